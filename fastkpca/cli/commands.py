"""The command line: ``fastkpca fit | plan | project | info | kernels | demo``. Wording only; the library does the work.

Exit codes: 0 done, 1 an error (one line on stderr), 2 wrong usage, 130 Ctrl-C, 141 the reader of a pipe went away.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from ..base.checks import is_number
from ..base.near import did_you_mean

# what imports more than the package itself is imported where it is used: --help and wrong usage answer soon

__all__ = ["main"]

_DEFAULT_COMPONENTS = 5
_PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg")
_BIG_FILE = 1 << 24


_drawn: list[Any] = []  # bars that a warning has to take away before it is printed


class _Refused(Exception):
    """What the command line itself finds wrong; the text is the whole message."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (argparse's own exits, 0 and 2, are raised as SystemExit)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    options = _parser().parse_all(arguments)
    stdout: Any = sys.stdout
    with contextlib.suppress(AttributeError):  # a StringIO in its place encodes nothing
        stdout.reconfigure(encoding="utf-8")  # names of rows and columns, whatever the terminal's encoding is
    try:
        with _one_line_warnings(), _rereadable_input(options):
            options.run(options)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        _say("error", "interrupted")
        return 130
    except BrokenPipeError:
        # what is still in the buffer would raise again while Python shuts down
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if options.debug:
            raise
        _say("error", _described(error))
        return 1


class _ClosedStream(io.StringIO):
    """In the place of a standard stream that is closed."""

    buffer: Any

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def write(self, text: str) -> int:
        raise _Refused(f"{self._name} is closed: what belongs there is lost; open it, if only as /dev/null")

    def read(self, size: int | None = -1) -> str:
        raise _Refused(f"{self._name} is closed; give the name of a file")


def _open_closed_streams() -> None:
    """Python leaves closed standard streams out; the next files that are opened would get their numbers, and what is
    printed would get lost, or into other files."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which gets the lowest number that is free
    if sys.stdin is None:
        sys.stdin = _ClosedStream("standard input")
        sys.stdin.buffer = sys.stdin
    if sys.stdout is None:
        sys.stdout = _ClosedStream("standard output")
    if sys.stderr is None:  # print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _described(error: Exception) -> str:
    text = _in_words_of_the_command(" ".join(str(error).split()))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename!r}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, FileExistsError) and "--force" not in text:
        return f"{text}; --force overwrites it"
    if isinstance(error, MemoryError):
        return f"out of memory{': ' + text if text else ''}; try fewer components, a larger --tol or --memory-limit"
    if (
        isinstance(error, (_Refused, ValueError, TypeError, OSError, RuntimeError, ImportError, AttributeError))
        and text
    ):
        return text
    return f"{type(error).__name__}: {text} (a fault of fastkpca: run again with --debug and report what it prints)"


def _in_words_of_the_command(text: str) -> str:
    """The options of the command line in place of the arguments of ``load`` and ``kpca``."""
    text = re.sub(r"plugins=\['([^']*)'\]", r"--plugins \1", text).replace("plugins=True", "--plugins all")
    text = text.replace("fastkpca.list_kernels() lists", "'fastkpca kernels' lists")
    text = re.sub(r"\bmax_features=(\d+)", r"--max-features \1", text).replace("max_features", "--max-features")
    text = re.sub(r"\btol=([0-9][0-9.e+-]*)", r"--tol \1", text)
    text = text.replace("fastkpca.plan shows", "'fastkpca plan' shows")
    text = re.sub(r"\bn_threads is (.*), or None for all processors", r"--threads is \1", text)
    text = text.replace("give c of at most", "give -c of at most").replace("or None for all", "or -c all")
    return text.replace("standardize=True", "--standardize").replace("standardize=False", "--no-standardize")


def _say(kind: str, text: str) -> None:
    for bars in _drawn:
        bars.clear()
    with contextlib.suppress(BrokenPipeError):
        print(f"fastkpca: {kind}: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _progress(enabled: bool) -> Iterator[Any]:
    """A progress callable with ``clear``: a bar on stderr, drawn only on a terminal and only where a stage takes
    longer than a second."""
    from ..base.progress import Bars

    bars = Bars(
        file=sys.stderr,
        disable=None if enabled else True,  # None: unless it is a terminal
        delay=1.0,
        ascii=".#",
        bar_format="[{bar:40}] {desc} {percentage:3.0f} %",
    )
    _drawn.append(bars)
    try:
        yield bars
    finally:
        bars.clear()
        _drawn.remove(bars)


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say("warning", _in_words_of_the_command(" ".join(str(message).split())))

    with warnings.catch_warnings():
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


# ---- arguments -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any):
        options |= {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**options)
        self.commands: dict[str, _Parser] = {}

    def parse_all(self, arguments: list[str]) -> argparse.Namespace:
        """The options; what is not known is an error of the command that it was given to, which knows near matches."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            command = self.commands[options.command]
            wrong = next((word for word in unknown if word.startswith("-")), unknown[0])
            near = did_you_mean(wrong.partition("=")[0], command._option_string_actions)
            advice = [near] * bool(near) + _as_parameter(wrong, unknown) * ("--param" in command._option_string_actions)
            command.error("; ".join([f"unrecognized arguments: {' '.join(unknown)}", *advice]))
        return options

    def error(self, message: str) -> NoReturn:

        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        near = wrong and did_you_mean(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        self.exit(2, f"fastkpca: error: {message}{f'; {near}' if near else ''} (see '{self.prog} --help')\n")


def _as_parameter(option: str, unknown: list[str]) -> list[str]:
    """How an unknown option with a number is given, if it is a parameter of the kernel."""
    name, equals, value = option.partition("=")
    if not equals:
        value = next(iter(unknown[unknown.index(option) + 1 :]), "")
    if not name.startswith("--") or not is_number(_value(value.partition(",")[0])):
        return []
    return [f"a parameter of the kernel without an option of its own is given by --param {name[2:]}={value}"]


def _number_of_components(text: str) -> int | float | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        fraction = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of components nor a fraction of the variance, nor 'all'"
        ) from None
    if fraction == 1.0:
        raise argparse.ArgumentTypeError(f"{text} may mean one component or all of the variance; write 1 or all")
    return fraction


def _bytes(text: str) -> int | None:
    from ..base.checks import check_memory_limit

    try:
        return check_memory_limit(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an amount of memory; write for example 500M or 4GiB"
        ) from None


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), _value(value.strip())


def _numbers(text: str) -> float | list[float]:
    """One number, or several with commas: one for each column."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor numbers with commas, one for each column"
        ) from None
    return values if len(values) > 1 else values[0]


def _value(text: str) -> Any:
    parts = [_value(part) for part in text.split(",")] if "," in text else []
    if parts and all(map(is_number, parts)):
        return parts
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of columns; separate them by commas")
    return words


def _add_input(parser: argparse.ArgumentParser, *, labels: bool) -> None:
    group = parser.add_argument_group(
        "reading FILE (csv, tsv, txt, also .gz; npy, npz, MATLAB mat, HDF5, zarr, Parquet; - is standard input)"
    )
    group.add_argument("--var", metavar="NAME", help="which array of an npz, mat, HDF5 or zarr file")
    take = group.add_mutually_exclusive_group()
    take.add_argument("--columns", type=_words, metavar="LIST", help="take these: names or numbers, e.g. a,b or 1,3-5")
    take.add_argument("--skip-columns", type=_words, metavar="LIST", help="leave these out")
    group.add_argument("--id", metavar="COLUMN", help="names the rows: left out of the data, written beside the scores")
    if labels:
        group.add_argument("--label-column", metavar="COLUMN", help="classes: left out of the data, colours the plot")
    group.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="does the first line name the columns; auto: yes where it holds words over numbers, or counts (years)",
    )
    group.add_argument("--decimal", choices=(".", ","), default=".", help="decimal point or comma in text files (.)")
    group.add_argument(
        "--drop-missing", action="store_true", help="leave rows with missing values out; their scores are empty fields"
    )


def _add_plugins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugins",
        type=lambda text: True if text.strip() == "all" else _words(text),
        default=False,
        metavar="NAME",
        help="allow kernels of this installed package to run, e.g. fastkpca-kernels-contrib; several with commas, or "
        "'all'. Without it a model with such a kernel is not loaded",
    )


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="show the whole traceback of an error")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--quiet", action="store_true", help="no progress, no notes, no summary")
    _add_debug(parser)


_EXAMPLES = {
    "": """examples:
  fastkpca fit data.csv -c 5 -o model.kpca --scores scores.csv
  fastkpca project model.kpca new.csv > new-scores.csv
  fastkpca COMMAND --help                               options and examples of one command""",
    "fit": """examples:
  fastkpca fit data.csv                                 5 components, Gaussian kernel, sigma from the data
  fastkpca fit data.csv --standardize -c 10 -o model.kpca --scores scores.csv --plot scores.png
  fastkpca fit data.csv --kernel polynomial --degree 2 -c 0.95
  fastkpca fit people.csv --id name --label-column group --scores scores.csv --plot groups.png
  fastkpca fit german.csv --decimal , --columns height,3-5
  zcat data.csv.gz | fastkpca fit - --scores - > scores.csv""",
    "plan": """examples:
  fastkpca plan data.csv
  fastkpca plan data.csv --kernel polynomial --degree 3 -c 20 --memory-limit 500M""",
    "project": """examples:
  fastkpca project model.kpca new.csv > scores.csv
  fastkpca project model.kpca people.csv --id name --scores scores.csv
  fastkpca project matern.kpca new.csv --plugins fastkpca-kernels-contrib""",
    "info": """example:
  fastkpca info model.kpca""",
    "kernels": """examples:
  fastkpca kernels
  fastkpca kernels --load                               with their parameters""",
    "demo": """example:
  fastkpca demo --output my-demo""",
}


def _parser() -> _Parser:
    parser = _Parser(
        prog="fastkpca",
        description="Fast kernel principal component analysis with certified eigenvalues.",
        epilog=_EXAMPLES[""],
    )
    parser.add_argument("--version", action="version", version=f"fastkpca {metadata.version('fastkpca')}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], None], summary: str, *places: str) -> _Parser:
        """A command, its examples, and the arguments that stand without an option."""
        command: _Parser = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=_EXAMPLES[name]
        )
        for place in places:
            command.add_argument(place.lower(), metavar=place)
        command.set_defaults(run=run)
        parser.commands[name] = command
        return command

    fit = add("fit", _fit, "fit a model to the rows of a file", "FILE")
    _add_fit(fit)
    _add_output(fit)
    _add_input(fit, labels=True)
    _add_common(fit)

    plan = add("plan", _plan, "what fit would run, and what that costs", "FILE")
    _add_fit(plan)
    _add_input(plan, labels=True)
    plan.add_argument("--quiet", action="store_true", help="no progress, no notes")

    project = add("project", _project, "scores of new rows under a model", "MODEL", "FILE")
    where = "scores: .csv, .csv.gz or .npy (by default csv to stdout)"
    project.add_argument("-o", "--output", "--scores", metavar="FILE", help=where)
    _add_plugins(project)
    _add_input(project, labels=False)
    _add_common(project)

    info = add("info", _info, "what a model file holds", "MODEL")
    _add_plugins(info)

    kernels = add("kernels", _kernels, "list the kernels")
    kernels.add_argument(
        "--load", action="store_true", help="import each, and show its parameters and what it offers, or what failed"
    )
    for command in (plan, info, kernels):
        _add_debug(command)

    _add_demo(add("demo", _demo, "fit real data, write and check the results"))
    return parser


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--output", default="demo-output", metavar="DIR", help="folder of the results (demo-output)")
    demo.add_argument("--force", action="store_true", help="use the folder although it holds other files")
    demo.add_argument("--quiet", action="store_true", help="no progress")
    _add_debug(demo)


_KERNEL_PARAMETERS = (
    (
        "sigma",
        _numbers,
        "width of the Gaussian exp(-|x-y|^2 / (2 sigma^2)), or one for each column as in 0.5,1,2; by "
        "default from the median distance",
    ),
    ("gamma", _numbers, "scikit-learn's gamma, in place of sigma or scale"),
    ("offset", float, "of the polynomial (scale x.y + offset)^degree and of tanh(scale x.y + offset)"),
    ("coef0", float, "scikit-learn's name of offset"),
    ("scale", float, "see offset"),
    ("degree", int, "see offset"),
)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    kernel = fit.add_argument_group("kernel")
    kernel.add_argument("--kernel", default="gaussian", help="its name (gaussian); 'fastkpca kernels' lists them")
    for name, kind, text in _KERNEL_PARAMETERS:
        kernel.add_argument(f"--{name}", type=kind, metavar="NUMBER", help=text)
    kernel.add_argument(
        "--param",
        type=_parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other kernel parameter; several numbers with commas, as a width for each column",
    )
    work = fit.add_argument_group("work")
    work.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="subtract the mean of each column and divide by its standard deviation, here and in new rows",
    )
    work.add_argument(
        "-c",
        "--components",
        type=_number_of_components,
        default=argparse.SUPPRESS,  # a number that was given may be too large, and the default may not
        metavar="C",
        help=f"how many ({_DEFAULT_COMPONENTS}), or the fraction of the variance to explain (0.95), or 'all'",
    )
    work.add_argument("--tol", type=float, metavar="T", help="width of the eigenvalue intervals over the largest")
    work.add_argument(
        "--max-features", type=int, metavar="N", help="spend at most so many features, with the intervals that result"
    )
    work.add_argument("--method", help="auto, dense, features or krylov (auto)")
    work.add_argument("--threads", type=int, metavar="N", dest="n_threads", help="by default all processors")
    work.add_argument("--memory-limit", type=_bytes, metavar="SIZE", help="for example 500M or 4G")
    work.add_argument("--seed", type=int, default=0, help="of the random choices (0)")


def _add_output(fit: argparse.ArgumentParser) -> None:
    out = fit.add_argument_group("output")
    out.add_argument(
        "-o", "--output", metavar="MODEL", help="write the model, for 'fastkpca project'; NAME.mat: for MATLAB"
    )
    out.add_argument("--scores", metavar="FILE", help="write the scores: .csv, .csv.gz or .npy; - is standard output")
    out.add_argument("--plot", metavar="FILE", help=f"plot the first two components: {' '.join(_PICTURES)}")


# ---- commands --------------------------------------------------------------------------------------------------------


def _fit(options: argparse.Namespace) -> None:
    from .. import plot
    from ..rows import scorefiles

    if options.output == "-":
        raise _Refused("a model is written into a file; give -o NAME.kpca")
    _check_outputs([options.output, options.scores, options.plot], [options.file], options.force)
    write_scores = _score_writer(options.scores, options)
    if options.plot is not None:
        if Path(options.plot).suffix.lower() not in _PICTURES:
            raise _Refused(f"plots are written as {', '.join(_PICTURES)}, which {options.plot!r} does not end with")
        plot.require_matplotlib()
    settings = _settings(options)

    import fastkpca as fk

    # MATLAB's variables include the scores
    mat = options.output if (options.output or "").lower().endswith(".mat") else None
    with _progress(not options.quiet) as progress:
        table = _read(options, progress, options.label_column)
        settings["c"] = _components(table, options)
        start = time.perf_counter()
        with warnings.catch_warnings():
            if "components" not in options:  # fewer than the default are what the summary says: nobody asked for more
                warnings.filterwarnings("ignore", f"{settings['c']} components asked for")
            model = _fitted(table, settings, options.scores or options.plot or mat, progress)
        seconds = time.perf_counter() - start
        if options.output is not None:
            write_model = fk.save if mat is None else fk.export_mat
            write_model(model, options.output, overwrite=options.force)
        if write_scores is not None:
            progress(f"writing {options.scores}", 0, 0)
            scores = scorefiles.among_all(model.score, table.kept, _beside(options.scores))
            write_scores(scores, options.force, _identifiers(table, options))
        if options.plot is not None:
            plot.save(plot.scores(model, table.labels), options.plot, overwrite=options.force)
    if not options.quiet:
        report = sys.stderr if options.scores == "-" else sys.stdout
        print(summary(model, seconds), file=report)
        for what, path in (("model", options.output), ("scores", options.scores), ("plot", options.plot)):
            if path not in (None, "-"):
                print(f"{what + ' written to':<18}{path}", file=report)
        plugin = None if options.output is None or mat is not None else _distribution(options.kernel)
        if plugin is not None:
            line = f"fastkpca project {options.output} FILE --plugins {plugin}"
            print(f"{'new rows':<18}{line} (the kernel is of that distribution)", file=report)


def _distribution(kernel: str) -> str | None:
    """The distribution that the kernel of this name comes from; None for fastkpca's own."""
    import fastkpca as fk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # get_kernel has said it
        holders = {e.distribution for e in fk.list_kernels() if kernel in (e.name, e.qualified, *e.aliases)}
    return next(iter(holders - {"fastkpca"}), None)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of ``kpca`` and ``plan`` but c, which needs the table. A wrong kernel is found before a file is
    read."""
    import fastkpca as fk

    parameters = _kernel_parameters(options)
    fk.get_kernel(options.kernel, **parameters)
    given = vars(options)
    settings = {
        name: given[name]
        for name in ("tol", "max_features", "method", "n_threads", "memory_limit", "standardize")
        if given[name] is not None
    }
    return {"kernel": options.kernel, "rng": options.seed, **settings, **parameters}


def _components(table: Any, options: argparse.Namespace) -> int | float | None:
    """What ``-c`` says; by default a number that a short file has."""
    if "components" in options:
        return options.components
    n = table.n_rows
    if not 2 <= n <= _DEFAULT_COMPONENTS:  # kpca refuses a single row in its own words
        return min(n, _DEFAULT_COMPONENTS)
    if not options.quiet:
        _say("note", f"{n - 1} component{'s' * (n > 2)} in place of {_DEFAULT_COMPONENTS}: {n} rows have no more")
    return n - 1


def _fitted(table: Any, settings: dict[str, Any], scores_at: str | None, progress: Any) -> Any:
    """The model of a table, with the names of its columns; scores are kept, beside ``scores_at``, where they are
    needed."""
    import fastkpca as fk

    from ..rows import scorefiles

    with _columns_of_the_file(table):
        model = fk.kpca(
            table.X,
            **settings,
            return_scores=scores_at is not None,
            out=None if scores_at is None else scorefiles.score_place(_beside(scores_at)),
            progress=progress,
        )
    if table.names and all(table.names) and len(set(table.names)) == len(table.names):
        model = dataclasses.replace(model, feature_names=tuple(table.names))
    return model


def _plan(options: argparse.Namespace) -> None:
    settings = _settings(options)

    import fastkpca as fk

    with _progress(not options.quiet) as progress:
        table = _read(options, progress, options.label_column)
        settings["c"] = _components(table, options)
        with _columns_of_the_file(table):
            chosen = fk.plan(table.X, **settings)
    print(_in_words_of_the_command(str(chosen)))


@contextlib.contextmanager
def _columns_of_the_file(table: Any, needs: int = 1) -> Iterator[None]:
    """Columns in warnings and errors of the library by the numbers and names that the file gives them. Where rows are
    refused that hold NaN or infinity: all columns that do, with how many."""
    from ..rows import tables

    def renamed(message: Warning | str) -> str:
        def labels(found: re.Match[str]) -> str:
            numbers = [int(j) for j in found[1].split(", ")]
            return ", ".join(map(table.label, numbers)) if max(numbers) < len(table.places) else found[0]

        return re.sub(r"\bcolumn (\d+(?:, \d+)*)", labels, str(message))

    show = warnings.showwarning
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place, **options: show(renamed(message), *place, **options)
            yield
    except ValueError as error:
        columns, n_others = tables.faults(table)
        if not columns:
            raise _Refused(renamed(str(error))) from error
        advice = ", or leave the columns out with --skip-columns" if n_others >= needs else ""
        raise _Refused(
            f"missing values (NaN) or infinities in {columns}; drop or fill in these rows first (--drop-missing drops "
            f"those with NaN){advice}"
        ) from error


def _project(options: argparse.Namespace) -> None:
    from ..rows import scorefiles

    _check_outputs([options.output], [options.file, options.model], options.force)
    write_scores = _score_writer(options.output or "-", options)

    import fastkpca as fk

    with _progress(not options.quiet) as progress:
        model = fk.load(options.model, plugins=options.plugins)
        table = _read(options, progress, like=model.feature_names, needs=model.n_features)
        if not options.quiet:
            _note_of_order(table.names, model.feature_names, options.file)
        place = scorefiles.score_place(_beside(options.output or "-"))
        with _columns_of_the_file(table, model.n_features):
            scores = fk.kpca_project(model, table.X, out=place, progress=progress)
    assert write_scores is not None
    every = scorefiles.among_all(scores, table.kept, _beside(options.output or "-"))
    write_scores(every, options.force, _identifiers(table, options))
    if options.output not in (None, "-") and not options.quiet:
        print(f"scores of {scores.shape[0]} rows, {scores.shape[1]} components, written to {options.output}")


def _note_of_order(names: Sequence[str] | None, of_model: Sequence[str] | None, file: str) -> None:
    """Say where the columns cannot be taken by name, because only the file or only the model has names."""
    from ..rows.columns import listed

    if names is None and of_model is not None:
        _say("note", f"{file} does not name its columns: taken in their order for {listed(of_model)}")
    elif names is not None and of_model is None:
        _say("note", f"the model has no names of columns: those of {file} are taken in their order: {listed(names)}")


def _info(options: argparse.Namespace) -> None:
    import fastkpca as fk

    from ..rows.columns import listed

    model = fk.load(options.model, plugins=options.plugins)
    print(summary(model))
    how = "each column minus its mean, over its standard deviation, also in new rows"
    print(f"{'standardize':<18}{'no' if model.scale is None else f'yes: {how}'}")
    names = listed(model.feature_names or (), 50) or f"{model.n_features} without names, in the order of the fit"
    print(f"{'needs columns':<18}{names}")
    print(f"{'size of the file':<18}{_size(os.path.getsize(options.model))}")


def _kernels(options: argparse.Namespace) -> None:
    import fastkpca as fk

    print(fk.list_kernels(load=options.load))


def _demo(options: argparse.Namespace) -> None:
    from . import demo

    with _progress(not options.quiet) as progress:
        demo.run(options.output, summary, force=options.force, progress=progress)


# ---- pieces ----------------------------------------------------------------------------------------------------------


def _check_outputs(outputs: Sequence[str | None], inputs: Sequence[str], force: bool) -> None:
    """Before any work: every output may be written, none is an input, no two are the same."""
    from ..base.atomic import check_target

    taken = {os.path.realpath(path): f"the input {path!r}" for path in inputs if path != "-"}
    for path in outputs:
        if path in (None, "-"):
            continue
        target = check_target(path, overwrite=True)
        if str(target) in taken:
            raise _Refused(f"the output {path!r} is the same file as {taken[str(target)]}")
        taken[str(target)] = f"the output {path!r}"
        check_target(path, overwrite=force)


def _score_writer(path: str | None, options: argparse.Namespace) -> Callable[..., None] | None:
    from ..rows import scorefiles

    if path == "-":
        return lambda scores, overwrite, identifiers: scorefiles.write_scores_csv(sys.stdout, scores, identifiers)
    return None if path is None else scorefiles.score_writer(path, with_identifiers=options.id is not None)


def _beside(path: str) -> str:
    """Where many scores wait: beside their file, or in the folder of temporary files."""
    return tempfile.gettempdir() + os.sep if path == "-" else path


def _identifiers(table: Any, options: argparse.Namespace) -> tuple[str, Any] | None:
    """What the rows are called, and the name of that column."""
    return None if table.identifiers is None else ("id" if options.id.isdigit() else options.id, table.identifiers)


def _kernel_parameters(options: argparse.Namespace) -> dict[str, Any]:
    given = vars(options)
    parameters = {name: given[name] for name, *_ in _KERNEL_PARAMETERS if given[name] is not None}
    for name, value in options.param:
        if name in parameters:
            raise _Refused(f"the kernel parameter {name!r} is given twice")
        parameters[name] = value
    return parameters


def _read(
    options: argparse.Namespace,
    progress: Any,
    label_column: str | None = None,
    like: Sequence[str] | None = None,
    needs: int = 1,
) -> Any:
    from ..rows import tables

    with contextlib.suppress(OSError):
        if os.path.getsize(options.path) > _BIG_FILE:
            progress(f"reading {options.file}", 0, 0)
    name = "standard input" if options.file == "-" else options.file
    table = tables.read(
        options.path,
        var=options.var,
        columns=options.columns,
        skip_columns=options.skip_columns,
        label_column=label_column,
        header={"auto": None, "yes": True, "no": False}[options.header],
        like=like,
        needs=needs,
        id_column=options.id,
        decimal=options.decimal,
        called=name,
        allow_missing=options.drop_missing,
    )
    if options.drop_missing:
        table = tables.without_missing(table, name)
    for note in table.notes if not options.quiet else ():
        _say("note", note)
    return table


@contextlib.contextmanager
def _rereadable_input(options: argparse.Namespace) -> Iterator[None]:
    """``options.path``: where the input is. Standard input (-) and pipes are copied into a file, since it is read
    repeatedly."""
    options.path = vars(options).get("file")
    if options.path is None or (options.path != "-" and not _is_pipe(options.path)):
        yield
        return
    name = "standard input" if options.path == "-" else options.path
    source = contextlib.nullcontext(sys.stdin.buffer) if options.path == "-" else open(options.path, "rb")  # noqa: SIM115
    with tempfile.NamedTemporaryFile(prefix="fastkpca-") as copy:
        with source as stream:
            _copy(stream, copy, name)
        copy.flush()
        options.path = copy.name
        yield


def _copy(stream: Any, copy: Any, name: str) -> None:
    """All that there is, within half of the room that the folder of temporary files has left: some input never ends."""
    with contextlib.suppress(OSError):  # what stands in for standard input may have no number
        number = stream.fileno()
        if not os.isatty(number) and stat.S_ISCHR(os.fstat(number).st_mode) and stream.peek(1):
            raise _Refused(f"{name} is a device, which has no end; give a file or a pipe")
    room = size = shutil.disk_usage(os.path.dirname(copy.name)).free // 2
    while block := stream.read(1 << 20):
        room -= len(block)
        if room < 0:
            raise _Refused(
                f"{name} has not ended after {_size(size)}, half of what {os.path.dirname(copy.name)} has left, where "
                "it is copied, since it is read repeatedly; give a file, or TMPDIR another folder"
            )
        copy.write(block)


def _is_pipe(path: str) -> bool:
    """Whether this is neither a file nor a folder: a named pipe, a shell's <(command), /dev/stdin."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.4g} {unit}"
        n_bytes /= 1000
    raise AssertionError("unreachable")


def summary(model: Any, seconds: float | None = None) -> str:
    """What a model is and how well its eigenvalues are known, for the terminal."""
    import numpy as np

    eigenvalues = np.asarray(model.eigenvalues)
    bounds, explained = np.asarray(model.eigenvalue_bounds), np.asarray(model.explained)
    seconds = model.info.get("seconds") if seconds is None else seconds
    out = io.StringIO()

    def line(name: str, value: object) -> None:
        print(f"{name:<18}{value}", file=out)

    line("kernel", model.kernel)
    line("method", model.plan.method)
    line("rows", model.n_samples)
    line("columns", model.n_features)
    line("components", len(eigenvalues))
    if seconds is not None:
        line("seconds", f"{seconds:.3g}")
    print(file=out)
    print(f"{'PC':>4}  {'eigenvalue':>18}  {'lower end':>18}  {'upper end':>18}  {'explained':>10}", file=out)
    for i, (value, (low, high), percent) in enumerate(zip(eigenvalues, bounds, explained)):
        print(f"{i + 1:>4}  {value:>18.12g}  {low:>18.12g}  {high:>18.12g}  {percent:>8.3f} %", file=out)
    width = float(np.max(bounds[:, 1] - bounds[:, 0]) / eigenvalues[0]) if len(eigenvalues) else 0.0
    print(file=out)
    low, high = model.total_variance_bounds
    # where the total variance is an interval, explained refers to its upper end
    if not model.total_variance > 0:
        line("explained", "not defined: negative eigenvalues outweigh the others")
    else:
        line(
            "explained",
            f"{'at least ' if low < high * (1 - 1e-9) else ''}{explained.sum():.3f} % of {model.explained_of}",
        )
    line("intervals", f"{model.bounds_text}, at most {width:.1e} of the largest eigenvalue wide")
    return out.getvalue().rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
