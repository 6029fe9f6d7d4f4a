"""Shared by all tests: the scale of attacks on bounds, seeds that are printed, and where real data lies."""

from __future__ import annotations

import os

# One thread of BLAS for each process of tests: on matrices this small more of them mostly wait for each other. Before
# numpy loads its BLAS. A test that is about these threads sets their number itself.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import zlib

import numpy as np
import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--attack",
        type=float,
        default=0.02,
        help="fraction of the full number of random attack cases to run (1 = all, default 0.02)",
    )


def pytest_xdist_auto_num_workers(config) -> int:
    """One process for each processor, four at most, where all tests run; a few that are named run in this process."""
    if config.args_source != pytest.Config.ArgsSource.TESTPATHS:
        return 0
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Attack:
    """How many random cases to run, and generators whose seed is printed so that a failure can be repeated."""

    def __init__(self, fraction: float):
        self.fraction = fraction

    def count(self, full: int, least: int = 3) -> int:
        return max(least, round(full * self.fraction))

    def rng(self, label: str, case: int = 0) -> np.random.Generator:
        seed = [zlib.crc32(label.encode()), case]
        print(f"seed of {label}: {seed}")
        return np.random.default_rng(seed)


@pytest.fixture
def attack(request) -> Attack:
    return Attack(request.config.getoption("--attack"))


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """add(distribution, entries, sources, version, group=, summary=): a distribution on sys.path, not installed."""
    import fake_plugins  # not where the package itself cannot be imported, which some tests are about

    yield from fake_plugins.on_path(tmp_path, monkeypatch)
