"""Labels of any type, as whole numbers; every error says what was found and what is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastkpca.methods import check_numbers


def refuse_masked(values: Any, name: str, advice: str) -> None:
    """Raise ValueError for masked entries."""
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(1, dtype=bool)
    if mask.any():
        raise ValueError(f"{name} has masked entries (first at row {int(np.argwhere(mask)[0][0])}); {advice}")


def real_targets(t: Any, n_samples: int) -> np.ndarray:
    """Targets (n_samples, k) of a regression, float64, from a vector or columns; classes are no targets."""
    need = (
        f"real numbers, shape ({n_samples},) or ({n_samples}, k) with k of 1 or more (of labels, a column of zeros and "
        "ones for each class), without rows that miss some"
    )
    targets = check_numbers(t, "t", need, (n_samples, None) if np.ndim(t) == 2 else (n_samples,))
    if not targets.size:
        raise ValueError(f"t has shape {targets.shape}; give {need}")
    # in C order: sums of others are added up in another order
    return np.ascontiguousarray(targets).reshape(n_samples, -1)


def class_codes(y: Any, n_samples: int, *, least: int = 1, purpose: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, sorted where they can be, and for each row the number of its label.

    Parameters
    ----------
    y : array_like (n_samples,)
        Numbers, strings, truth values or objects.
    n_samples : int
    least : int
        Rows that every class must have.
    purpose : str
        Who asks, for the texts of errors.

    Returns
    -------
    classes : ndarray (C,)
    codes : ndarray (n_samples,), int
    """
    refuse_masked(y, "y", "drop these rows")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y has shape {values.shape}; {purpose} needs one label a row, shape ({n_samples},)")
    if len(values) != n_samples:
        raise ValueError(f"y has {len(values)} labels, X has {n_samples} rows; {purpose} needs one label a row")
    if values.dtype.kind == "c":
        raise TypeError(f"y is complex; {purpose} needs labels that are real numbers, strings or truth values")
    missing = np.array([x is None or x != x for x in values.tolist()], dtype=bool)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"y contains {values.tolist()[row]!r} (first at row {row}); drop these rows, or give them a label"
        )
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:  # labels of several types have no order: as they come
        number: dict[Any, int] = {}
        codes = np.array([number.setdefault(x, len(number)) for x in values.tolist()])
        classes = np.empty(len(number), dtype=object)
        classes[:] = list(number)
    codes = np.asarray(codes, dtype=np.intp).reshape(-1)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; {purpose} needs at least two")
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() < least:
        smallest = int(np.argmin(counts))
        hint = "; are these measured values rather than labels?" if np.sum(counts < least) > len(classes) / 2 else ""
        row = int(np.argmax(codes == smallest))
        raise ValueError(
            f"class {classes.tolist()[smallest]!r} has one row (row {row}); {purpose} needs at least {least} rows of "
            f"every class, one says nothing about the spread within: drop it or merge it{hint}"
        )
    return classes, codes


def subset(positive: Any, n_samples: int, *, purpose: str) -> np.ndarray:
    """A truth value for each row, from those or from row numbers."""
    refuse_masked(positive, "positive", "give a truth value for each row, or row numbers")
    values = np.asarray(positive)
    if values.ndim != 1:
        raise ValueError(f"positive has shape {values.shape}; give a truth value for each row, or row numbers")
    if values.dtype.kind == "b":
        if len(values) != n_samples:
            raise ValueError(f"positive has {len(values)} truth values, X has {n_samples} rows; give one for each row")
        chosen = values.copy()
    elif values.dtype.kind in "iu":
        if len(np.unique(values)) < len(values):
            hint = "; for zeros and ones pass positive == 1" if set(np.unique(values).tolist()) <= {0, 1} else ""
            raise ValueError(f"positive names rows more than once{hint}")
        if len(values) and not (values.min() >= 0 and values.max() < n_samples):
            raise ValueError(
                f"positive names row {int(values.max() if values.max() >= n_samples else values.min())}, "
                f"X has rows 0 to {n_samples - 1}"
            )
        chosen = np.zeros(n_samples, dtype=bool)
        chosen[values] = True
    else:
        raise TypeError(
            f"positive has the type {values.dtype}; give a truth value for each row, as in y == 'wanted', or row "
            "numbers"
        )
    n = int(chosen.sum())
    if n < 2:
        raise ValueError(f"positive marks {n} row{'s' * (n != 1)}; {purpose} needs at least two to know their spread")
    if n == n_samples:
        raise ValueError(f"positive marks every row; {purpose} needs at least one other row to push away")
    return chosen
