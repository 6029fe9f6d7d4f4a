"""``fastkpca certify``: intervals from the vectors in a file."""

from __future__ import annotations

import argparse

import fastkpca as fk

from ..rows.convert import as_rows
from .arguments import given, kernel_parameters
from .console import progress_bars
from .inputs import cleaned, columns_of_the_file, raw_table
from .tables import read as tables


def run_certify(options: argparse.Namespace) -> None:
    parameters = kernel_parameters(options)

    fk.get_kernel(options.kernel or "gaussian", **parameters)  # a wrong one is found before a file is read
    settings = given(options, "tol", "rows", "n_threads", "memory_limit", "guaranteed", "center")
    with progress_bars(not options.quiet) as progress:
        table = cleaned(raw_table(options, progress), options)
        progress(f"reading {options.vectors}", 0, 0)
        V = as_rows(tables.read(options.vectors, memory=options.memory_limit).X).all()
        if table.kept is not None and len(V) == len(table.kept):
            V = V[table.kept]  # as the rows that --drop-missing leaves
        with columns_of_the_file(table):
            found = fk.certify(
                table.X, options.kernel, V, rng=options.seed, progress=progress, **settings, **parameters
            )
    print(found)
