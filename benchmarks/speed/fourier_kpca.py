"""KPCA on Fourier features beside the same by hand: finufft, FFTs and ARPACK, which proves nothing.

Usage: python benchmarks/speed/fourier_kpca.py [large | one N d sigma]

By hand: periodic images at 8.6 sigma, modes to 1e-13, one type 1 of ones on the doubled grid, eigsh on FFT products; no
scores on either side, processor seconds, the best of three. Widths are those of the widest interval over lambda_1.
``large`` adds N from 5e4 to 5e6 at sigma = .05, where only the pass over rows grows: each
line in a process of its own (``one``), so that its peak memory, above the rows', is its own too; "growth" is its time
over that of the line before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.fft
from common import header
from scipy.sparse.linalg import LinearOperator, eigsh

import fastkpca as fk


def by_hand(X, sigma, c):
    import finufft

    d = X.shape[1]
    low = X.min(axis=0)
    side = np.ptp(X, axis=0)
    L = side + 8.6 * sigma
    M = np.ceil(L / (np.pi * sigma) * np.sqrt(np.log(1e13) / 2)).astype(int)
    P = np.ascontiguousarray((2 * np.pi * (X - low - side / 2) / L).T)
    transform = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[d - 1]
    t = transform(*P, np.ones(len(X), dtype=complex), tuple(4 * M + 1), eps=1e-12, isign=-1, nthreads=1)
    s = np.ones(())
    for m, length in zip(M, L):
        w = sigma * np.sqrt(2 * np.pi) / length * np.exp(-2 * (np.pi * sigma * np.arange(-m, m + 1) / length) ** 2)
        s = np.multiply.outer(s, np.sqrt(w))
    shape = [scipy.fft.next_fast_len(int(4 * m + 1)) for m in M]
    padded = np.zeros(shape, dtype=complex)
    padded[tuple(slice(0, 4 * m + 1) for m in M)] = t
    symbol = scipy.fft.fftn(np.roll(padded, [-2 * m for m in M], range(d)))
    total = (s * t[tuple(slice(m, 3 * m + 1) for m in M)]).ravel()
    corner = tuple(slice(0, 2 * m + 1) for m in M)

    def product(v):
        y = scipy.fft.ifftn(symbol * scipy.fft.fftn(s * v.reshape(s.shape), shape))[corner] * s
        return y.ravel() - total * (np.vdot(total, v) / len(X))

    operator = LinearOperator((s.size, s.size), matvec=product, dtype=complex)
    return np.sort(eigsh(operator, c, return_eigenvectors=True)[0])[::-1], s.size


def ours(X, sigma, c, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.errors.CertificateWarning)
        return fk.kpca(X, "gaussian", c, sigma=sigma, tol=tol, features="fourier", n_threads=1, return_scores=False)


def timed(task, repeats):
    best, found = np.inf, None
    for _ in range(repeats):
        started = time.process_time()
        found = task()
        best = min(best, time.process_time() - started)
    return best, found


def line(N, d, sigma, tol, repeats):
    X = np.random.default_rng(0).random((N, d))
    columns = [f"{N:>8} {d:>2} {sigma:>5} {tol:>6.0e}"]
    seconds, (exact, D) = timed(lambda: by_hand(X, sigma, 10), repeats)
    columns.append(f"by hand {seconds:8.3f} s (D = {D})")
    seconds, model = timed(lambda: ours(X, sigma, 10, tol), repeats)
    ends = model.eigenvalue_bounds
    width = np.ptp(ends, axis=1).max() / model.eigenvalues[0]
    columns.append(f"ours {seconds:8.3f} s (D = {model.info['n_features']}, {width:.1e} {model.bound_kind})")
    assert (ends[:, 0] <= exact).all() and (exact <= ends[:, 1]).all()
    print("; ".join(columns), flush=True)


def one(N, d, sigma):
    """Seconds, peak MB above the data, and what was found."""
    X = np.random.default_rng(0).random((N, d))
    ours(X[:2000], 0.5, 2, 1e-3)  # imports and first calls
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, model = timed(lambda: ours(X, sigma, 10, 1e-6), 1)
    plan = fk.plan(X, "gaussian", 10, sigma=sigma, tol=1e-6, method="features", features="fourier")
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    width = np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0]
    print(
        f"{seconds:.3f} {N:>8} {d:>2} {sigma:>5} {seconds:8.2f} s (plan "
        f"{plan.chosen.seconds:.2g}) {peak:6.0f} MB  D = {model.info['n_features']}  {width:.1e} {model.bound_kind}"
    )


def large():
    for d in (2, 3):
        last = None
        for N in (50_000, 500_000, 5_000_000):
            command = [sys.executable, __file__, "one", str(N), str(d), "0.05"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, text = done.stdout.split(" ", 1)
            growth = "" if last is None else f"  growth {float(seconds) / last:.2f}"
            last = float(seconds)
            print(text.rstrip() + growth, flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["one"]:
        one(int(arguments[1]), int(arguments[2]), float(arguments[3]))
        sys.exit()
    header("KPCA on Fourier features, uniform cube, c = 10")
    for N, d, sigma, tol in ((50_000, 2, 0.1, 1e-6), (50_000, 2, 0.1, 1e-10), (10_000, 3, 0.1, 1e-6)):
        line(N, d, sigma, tol, 3)
    if "large" in arguments:
        large()
