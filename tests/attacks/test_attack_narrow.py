"""Intervals of narrow Gaussians, from narrow blocks on near values and polynomials of these, contain LAPACK's."""

from __future__ import annotations

import narrow_cases as cases
import numpy as np

from fastkpca.solve.certificate import Bound
from fastkpca.solve.exact_passes import ExactRun
from fastkpca.solve.outlook import Outlook


def test_attack(attack, monkeypatch):
    """Rows with repeated eigenvalues, clusters, lattices; a wrong bound would show as an interval that misses."""
    taken, filtered = [], ExactRun._filtered
    monkeypatch.setattr(Outlook, "factorises", lambda *_: False)  # of few rows all entries prove it for certain
    monkeypatch.setattr(ExactRun, "_filtered", lambda run, *given: taken.append(1) or filtered(run, *given))
    problems = attack.count(400, least=25)
    for case in range(problems):
        rng = attack.rng("narrow", case)
        given = cases.narrow_problem(rng, int(rng.integers(600, 1200)))
        failed, model = cases.broken(given, case)
        assert not failed, (case, given["family"], given["sigma"], given["tol"], model.eigenvalue_bounds)
    assert len(taken) >= problems / 8


def test_the_polynomials_are_needed(monkeypatch):
    """Without them what a block of Lanczos misses of repeated eigenvalues would be missed: the attack sees it."""
    monkeypatch.setattr(Outlook, "factorises", lambda *_: False)
    monkeypatch.setattr(ExactRun, "_filtered", lambda run, pairs, top, wanted, *_: Bound(wanted, "filter", 1e-7))
    rng = np.random.default_rng(6)
    case = {"X": cases.ROWS["copies"](rng, 900, 3), "sigma": 0.2, "tol": 1e-6, "c": 8}
    assert cases.broken(case, 0)[0]
