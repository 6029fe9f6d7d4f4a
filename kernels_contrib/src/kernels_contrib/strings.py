"""The spectrum kernel on strings: counts of the pieces that they share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from fastkpca.kernels import Kernel, KernelParameterError
from fastkpca.methods import check_count, check_flag

__all__ = ["Spectrum"]


def _numbered(values: np.ndarray) -> tuple[int, np.ndarray]:
    """(number of different values, at least 1; the number of each value among them)."""
    different, numbers = np.unique(values, return_inverse=True)
    return max(len(different), 1), numbers.reshape(-1)


class Spectrum(Kernel):
    """Spectrum kernel: sum over all strings s of ``length`` characters of (times s is in x) (times s is in y).

    Leslie, Eskin, Noble, The spectrum kernel, 2002. Strings are sequences that Python compares character by character.
    All pieces of two lists are numbered at once, and their counts are sparse rows, of which the kernel is the product.

    Parameters
    ----------
    length : int
        Length of the pieces; 3 by default. A string that is shorter has none, and is 0 with every string.
    normalized : bool
        True: k(x, y) / sqrt(k(x, x) k(y, y)), so that long strings count no more than short ones.
    """

    api_version = 1
    positive_semidefinite = True
    takes_objects = True
    parameters = {"length": 3, "normalized": True}

    length: int
    normalized: bool

    def check(self) -> None:
        self.__dict__["length"] = check_count(self.length, "length")
        check_flag(self.normalized, "normalized")

    def block(self, X: Any, Y: Any) -> np.ndarray:
        counts = self._counts([*X, *Y])
        return np.asarray((counts[: len(X)] @ counts[len(X) :].T).toarray())

    def _counts(self, texts: Sequence[str]) -> sp.csr_array:
        """A row for each text, a column for each piece that one of them has."""
        for text in texts:
            if not isinstance(text, str):
                raise KernelParameterError(f"spectrum: takes strings; found an object of type {type(text).__name__}")
        sizes = np.array([len(text) for text in texts])
        letters = np.fromiter(map(ord, chain.from_iterable(texts)), dtype=np.int64, count=int(sizes.sum()))
        rows = np.repeat(np.arange(len(texts)), sizes)
        starts = np.flatnonzero(np.arange(len(letters)) + self.length <= np.cumsum(sizes)[rows])
        alphabet, letters = _numbered(letters)
        pieces, count = np.zeros(len(starts), dtype=np.int64), 1
        for j in range(self.length):
            if count * alphabet >= 1 << 62:
                count, pieces = _numbered(pieces)
            pieces, count = pieces * alphabet + letters[starts + j], count * alphabet
        pieces = _numbered(pieces)[1]
        shape = (len(texts), int(pieces.max(initial=0)) + 1)
        counts = sp.csr_array((np.ones(len(starts)), (rows[starts], pieces)), shape=shape)
        counts.sum_duplicates()
        if self.normalized:
            norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).reshape(-1))
            counts = sp.diags_array(1.0 / np.where(norms > 0.0, norms, 1.0)) @ counts
        return sp.csr_array(counts)
