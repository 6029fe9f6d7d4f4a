"""Names of columns at every door that compares rows with others: one rule, which is that of ``kpca_project``."""

from __future__ import annotations

import re
import warnings

import contrib_fits
import doors
import numpy as np
import pytest
from doors import FRAME, VIEW, Door
from kernels_contrib.methods.base import FittedMethod

import fastkpca as fk
from kernels_contrib import storage

plt = pytest.importorskip("matplotlib.pyplot")
REFUSED, TAKEN = list(doors.refused(FRAME)), list(doors.taken(FRAME))


def answered(door: Door, rows) -> object:
    """What a call answers, as something that can be compared; pictures are closed, and not compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = door.call(rows)
    plt.close("all")
    if door.name.startswith("fastkpca.plot"):
        return None
    return contrib_fits.contents(np.asarray(answer) if hasattr(answer, "matmat") else answer)


def outcome(door: Door, rows) -> str:
    """The error of a call, or of scikit-learn's a warning; "" where the rows are taken in silence."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            door.call(rows)
        except (ValueError, TypeError) as error:
            return str(error)
        finally:
            plt.close("all")
    return "; ".join(str(x.message) for x in raised if "feature names" in str(x.message))


@pytest.mark.parametrize("way", REFUSED)
def test_rows_of_other_columns_are_refused_at_every_door(way):
    taken = []
    for door in doors.doors():
        rows, text = doors.refused(door.frame)[way]
        said = outcome(door, rows)
        if not (said if door.of_scikit_learn else re.search(text, said)):
            taken.append(f"{door.name}: {said or 'taken in silence'}")
    assert not taken, "\n".join(taken)


@pytest.mark.parametrize("way", TAKEN)
def test_rows_without_names_or_in_other_containers_are_taken(way):
    wrong = []
    for door in doors.doors():
        rows = doors.taken(door.frame)[way]
        if door.of_scikit_learn and way in ("records", "xarray"):  # scikit-learn's own to refuse
            continue
        try:
            if answered(door, rows) != answered(door, door.frame):
                wrong.append(f"{door.name}: another answer")
        except (ValueError, TypeError) as error:
            wrong.append(f"{door.name}: {error!r}")
    assert not wrong, "\n".join(wrong)
