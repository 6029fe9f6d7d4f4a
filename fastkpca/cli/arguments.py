"""The options of every command, their help and their examples."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any, NoReturn

import numpy as np

from ..base.checks import check_count, check_memory_limit, is_number
from ..base.spelling import did_you_mean
from ..rows.times import as_times
from .console import Refused

DEFAULT_COMPONENTS = 5
SEPARATORS = (",", ".", "'", " ", "_")
"""Thousands separators that ``--thousands`` accepts."""
TOL = "width of the eigenvalue intervals over the largest"
PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg")


class Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any):
        options |= {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**options)
        self.commands: dict[str, Parser] = {}
        self.subparsers: Any = None

    def add(
        self,
        name: str,
        summary: str,
        *places: str,
        force: str = "overwrite existing files",
        quiet: str = "no progress, no notes, no summary",
    ) -> Parser:
        """A command with its examples, its positional arguments and the options of every command. ``force`` and
        ``quiet`` are the help of ``--force`` and ``--quiet``; "" leaves the option out."""
        description = f"{summary[0].upper()}{summary[1:]}."
        command: Parser = self.subparsers.add_parser(name, help=summary, description=description, epilog=EXAMPLES[name])
        for place in places:
            command.add_argument(place.lower(), metavar=place)
        debug = "show the whole traceback of an error"
        for option, text in (("--force", force), ("--quiet", quiet), ("--debug", debug)):
            if text:
                command.add_argument(option, action="store_true", help=text)
        self.commands[name] = command
        return command

    def parse_all(self, arguments: list[str]) -> argparse.Namespace:
        """The options; what is not known is an error of the command that it was given to, which knows near matches."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            command = self.commands[options.command]
            wrong = next((word for word in unknown if word.startswith("-")), unknown[0])
            similar = did_you_mean(wrong.partition("=")[0], command._option_string_actions)
            advice = [similar, _as_parameter(wrong, unknown) if "--param" in command._option_string_actions else ""]
            command.error("; ".join([f"unrecognized arguments: {' '.join(unknown)}", *filter(None, advice)]))
        return options

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:  # argparse's own says nothing where it cannot be written
            file.write(message)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        similar = wrong and did_you_mean(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        self.exit(2, f"fastkpca: error: {message}{f'; {similar}' if similar else ''} (see '{self.prog} --help')\n")


def _as_parameter(option: str, unknown: list[str]) -> str:
    """Form in which an unknown option with a number is given, if it is a parameter of the kernel; else ""."""
    name, equals, value = option.partition("=")
    if not equals:
        value = next(iter(unknown[unknown.index(option) + 1 :]), "")
    if not name.startswith("--") or not is_number(_value(value.partition(",")[0])):
        return ""
    return f"a parameter of the kernel without an option of its own is given by --param {name[2:]}={value}"


def _of(kind: Callable[[str], Any], wrong: str) -> Callable[[str], Any]:
    """The type of an argument: what ``kind`` makes of the text; where it cannot, an error of the text and ``wrong``."""

    def convert(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} {wrong}") from None

    return convert


def _count_or_share(text: str) -> int | float | None:
    if text == "all":
        return None
    number = _value(text)
    if not is_number(number):
        raise ValueError
    if isinstance(number, float) and number == 1.0:
        raise argparse.ArgumentTypeError(f"{text} may mean one component or all of the variance; write 1 or all")
    return number


def _between(text: str) -> float:
    confidence = float(text)
    if not 0.0 < confidence < 1.0:
        raise ValueError
    return confidence


def _named_value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError
    return name.strip(), _value(value.strip())


def _one_or_several(text: str) -> float | list[float]:
    """One number, or several with commas: one for each column."""
    values = [float(part) for part in text.split(",")]
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


def _split(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError
    return words


def _as_time(text: str) -> Any:
    times = as_times(np.array([text], dtype=object))
    if times is None:
        raise ValueError
    return times[0]


def _plugins(text: str) -> Any:
    return True if text.strip() == "all" else _names(text)


_names = _of(_split, "is not a list of columns; separate them by commas")
_components = _of(_count_or_share, "is neither a number of components nor a fraction of the variance, nor 'all'")
_confidence = _of(_between, "is not a number between 0 and 1, as in 0.99")
_memory = _of(check_memory_limit, "is not an amount of memory; write for example 500M or 4GiB")
_numbers = _of(_one_or_several, "is neither a number nor numbers with commas, one for each column")
_parameter = _of(_named_value, "is not of the form name=value")
_time = _of(_as_time, "is not a time, as in 2026-03-01T06:00 or '01.03.2026 06:00'")
_digits = _of(lambda text: check_count(int(text), "N", least=1, most=17), "is not a number of digits, 1 to 17")
_whole = _of(lambda text: check_count(int(text), "N", least=0), "is not a whole number")


def add_cells(parser: argparse.ArgumentParser, who: str) -> None:
    """The options that say how cells of text are read, which a model remembers."""
    text = parser.add_argument_group(f"cells of text and sheets; {who}")
    text.add_argument("--sheet", metavar="NAME", help="which sheet of an .xlsx file")
    what = "does the first line name the columns; auto: yes where it holds words over numbers, or counts (years)"
    text.add_argument("--header", choices=("auto", "yes", "no"), help=what)
    text.add_argument("--decimal", choices=(".", ","), help="decimal point or comma, also of what is written (.)")
    text.add_argument("--thousands", choices=SEPARATORS, metavar="SIGN", help="thousands separator: , . _ ' or a space")
    what = "words for missing values beside NA, NaN, ? and the like; --na-values=--- where they begin with -"
    text.add_argument("--na-values", type=_names, metavar="LIST", help=what)
    text.add_argument("--skip-rows", type=_whole, metavar="N", help="leave out the first N lines, above the names")
    what = "leave out the line below the names, which holds units"
    text.add_argument("--units-row", action=argparse.BooleanOptionalAction, help=what)
    what = "of the times in --id: 'day-first' for 3/4/2026, or as Python writes it, '%%d/%%m/%%Y %%H:%%M'"
    text.add_argument("--date-format", metavar="FORM", help=what)


def add_columns(group: argparse._ActionsContainer) -> None:
    take = group.add_mutually_exclusive_group()
    take.add_argument("--columns", type=_names, metavar="LIST", help="take these: names or numbers, e.g. a,b or 1,3-5")
    take.add_argument("--skip-columns", type=_names, metavar="LIST", help="leave these out")
    group.add_argument("--id", metavar="COLUMN", help="names the rows: left out of the data, written beside the scores")


def _add_input(parser: argparse.ArgumentParser, *, new_rows: bool, fills: bool = True) -> None:
    kinds = "csv, txt, .gz; xlsx, SQLite, DuckDB, npy, npz, mat, HDF5, zarr, Parquet, Arrow; - is stdin"
    group = parser.add_argument_group(f"reading FILE ({kinds})")
    group.add_argument("--var", metavar="NAME", help="which array of an npz, mat, HDF5 or zarr file")
    add_columns(group)
    if not new_rows:
        group.add_argument("--label-column", metavar="COLUMN", help="classes: left out of the data, colours the plot")
    group.add_argument("--query", metavar="SQL", help="which rows of a database, as in 'select a, b from t'")
    add_cells(parser, "by default as the model remembers of fit" if new_rows else "the model remembers these")
    gaps = group.add_mutually_exclusive_group()
    text = "leave rows with missing values out; their scores are empty fields"
    gaps.add_argument("--drop-missing", action="store_true", help=text)
    text = "let the model fill missing values, with those at which the row fits it best"
    if not new_rows:
        text += "; in turns, until the values and the model that is made of them agree"
    if fills:
        gaps.add_argument("--fill-missing", action="store_true", help=text)
    parser.set_defaults(fill_missing=False)


def _add_digits(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--digits", type=_digits, metavar="N", help="significant digits in text (6); 17: all of them")


def _add_plugins(parser: argparse.ArgumentParser) -> None:
    text = "allow kernels of this installed package to run, e.g. fastkpca-kernels-contrib; several with commas, or "
    text += "'all'. Without it a model with such a kernel is not loaded"
    parser.add_argument("--plugins", type=_plugins, default=False, metavar="NAME", help=text)


EXAMPLES = {
    "": """examples:
  fastkpca fit data.csv -c 5 -o model.kpca --scores scores.csv
  fastkpca project model.kpca new.csv > new-scores.csv
  fastkpca COMMAND --help                               options and examples of one command""",
    "fit": """examples:
  fastkpca fit data.csv                                 5 components, Gaussian kernel, sigma from the data
  fastkpca fit data.csv --standardize -c 10 -o model.kpca --scores scores.csv --plot scores.png
  fastkpca fit data.csv --kernel polynomial --degree 2 -c 0.95
  fastkpca fit people.csv --id name --label-column group --scores scores.csv --plot groups.png
  fastkpca fit german.csv --decimal , --thousands . --units-row --na-values Bad -o model.kpca --scores scores.csv
  fastkpca fit book.xlsx --sheet 2026 --columns height,3-5
  zcat data.csv.gz | fastkpca fit - --scores - > scores.csv""",
    "plan": """examples:
  fastkpca plan data.csv
  fastkpca plan data.csv --kernel polynomial --degree 3 -c 20 --memory-limit 500M""",
    "certify": """examples:
  fastkpca certify data.csv vectors.npy --kernel gaussian --sigma 0.5
  fastkpca certify data.csv vectors.csv --kernel rbf --gamma 0.1 --tol 1e-6""",
    "project": """examples:
  fastkpca project model.kpca new.csv > scores.csv
  fastkpca project model.kpca people.csv --id name --scores scores.csv
  fastkpca project matern.kpca new.csv --plugins fastkpca-kernels-contrib""",
    "monitor": """examples:
  fastkpca fit normal.csv --limits 0.99 -o model.kpca
  fastkpca monitor model.kpca new.csv --plot chart.png
  fastkpca monitor model.kpca new.csv --id time --limits 0.999 -o rows.csv
  fastkpca monitor model.kpca new.csv --id time --report report.html
  fastkpca monitor model.kpca monday.csv tuesday.csv --id time --append all.csv --json
  fastkpca monitor model.kpca new.csv --normal normal.csv
  fastkpca monitor model.kpca new.csv --fill-missing      where a sensor gave no value now and then""",
    "update": """examples:
  fastkpca fit january.csv --keep-moments -o model.kpca
  fastkpca update model.kpca february.csv
  fastkpca update model.kpca february.csv --forget 0.9 -o newer.kpca""",
    "info": """example:
  fastkpca info model.kpca""",
    "kernels": """examples:
  fastkpca kernels
  fastkpca kernels --load                               with their parameters""",
    "demo": """example:
  fastkpca demo --output my-demo""",
}


def parser_of_all() -> Parser:
    """The parser of all commands; ``command`` of what it returns is the name of the one that was given."""
    parser = Parser(
        prog="fastkpca",
        description="Fast kernel principal component analysis with certified eigenvalues.",
        epilog=EXAMPLES[""],
    )
    parser.add_argument("--version", action="version", version=f"fastkpca {metadata.version('fastkpca')}")
    parser.subparsers = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    add = parser.add

    fit = add("fit", "fit a model to the rows of a file", "FILE")
    _add_fit(fit)
    _add_output(fit)
    _add_input(fit, new_rows=False)

    plan = add("plan", "what fit would run, and what that costs", "FILE", force="", quiet="no progress, no notes")
    _add_fit(plan)
    _add_input(plan, new_rows=False, fills=False)

    text = "intervals for the eigenvalues from vectors that another program has found"
    certify = add("certify", text, "FILE", "VECTORS", force="", quiet="no progress, no notes")
    _add_certify(certify)
    _add_input(certify, new_rows=False, fills=False)

    project = add("project", "scores of new rows under a model", "MODEL", "FILE")
    where = "scores: .csv, .csv.gz, .xlsx or .npy (by default csv to stdout)"
    project.add_argument("-o", "--output", "--scores", metavar="FILE", help=where)
    _add_digits(project)
    _add_plugins(project)
    _add_input(project, new_rows=True)

    monitor = add("monitor", "alarms: new rows beyond the limits of a model (exit code 3)", "MODEL")
    monitor.add_argument("files", metavar="FILE", nargs="+")
    _add_monitor(monitor)
    _add_plugins(monitor)
    _add_input(monitor, new_rows=True)

    force = "overwrite an existing file that is not MODEL"
    update = add(
        "update", "add the rows of a file to a model that was fitted with --keep-moments", "MODEL", "FILE", force=force
    )
    update.add_argument("-o", "--output", metavar="FILE", help="the model with these rows (MODEL itself)")
    _add_update(update)
    update.add_argument("--tol", type=float, metavar="T", help=f"{TOL} (1e-6)")
    _add_plugins(update)
    _add_input(update, new_rows=True)

    _add_plugins(add("info", "what a model file holds", "MODEL", force="", quiet=""))

    kernels = add("kernels", "list the kernels", force="", quiet="")
    text = "import each, and show its parameters and what it offers, or what failed"
    kernels.add_argument("--load", action="store_true", help=text)

    force = "use the folder although it holds other files"
    demo = add("demo", "fit real data, write and check the results", force=force, quiet="no progress")
    demo.add_argument("--output", default="demo-output", metavar="DIR", help="folder of the results (demo-output)")
    return parser


def _add_monitor(monitor: argparse.ArgumentParser) -> None:
    text = "share of normal rows below both limits, as in .99; by default that of the limits that the model keeps"
    monitor.add_argument("--limits", type=_confidence, metavar="C", help=text)
    text = "rows of normal operation that the model was not made of: the limits are made of these"
    monitor.add_argument("--normal", metavar="FILE", help=text)
    monitor.add_argument("--alarms", type=_whole, default=20, metavar="N", help="explain the first N alarms (20)")
    text = "only rows whose time in the column --id is later, as 2026-03-01T06:00 or '01.03.2026 06:00'"
    monitor.add_argument("--since", type=_time, metavar="TIME", help=text)
    text = "write T2, SPE and what is beyond a limit of every row: .csv or .xlsx; - is standard output"
    monitor.add_argument("-o", "--output", metavar="FILE", help=text)
    _add_digits(monitor)
    monitor.add_argument("--append", metavar="FILE", help="the same, added to the rows that the file holds")
    monitor.add_argument("--contributions", metavar="FILE", help="write those of columns to every alarm: .csv, .xlsx")
    monitor.add_argument("--json", action="store_true", help="print one line of JSON in place of the summary")
    monitor.add_argument("--fail-on-alarm", action="store_true", help="exit code 4, not 3, where there are alarms")
    text = "add the rows without an alarm to MODEL, which was fitted with --keep-moments; its limits stay"
    monitor.add_argument("--update", action="store_true", help=text)
    _add_update(monitor)
    text = f"draw the charts: {' '.join(PICTURES)}; over --id where that holds times or names"
    monitor.add_argument("--plot", metavar="FILE", help=text)
    _add_report(monitor)


def _add_update(command: argparse._ActionsContainer) -> None:
    text = "multiply the weights of all rows before by F, as in 0.9"
    command.add_argument("--forget", type=_of(float, "is not a number"), default=1.0, metavar="F", help=text)
    text = "add features for rows that the model does not describe, up to N; 0: none (2048)"
    command.add_argument("--grow", type=_whole, metavar="N", help=text)


def _add_report(command: argparse._ActionsContainer) -> None:
    text = "write all of this with charts into a page that a browser shows without a network: .html"
    command.add_argument("--report", metavar="FILE", help=text)


KERNEL_PARAMETERS = (
    ("sigma", _numbers, "width of the Gaussian exp(-|x-y|^2 / (2 sigma^2)), or one for each column as in 0.5,1,2; by "
                        "default from the median distance"),
    ("gamma", _numbers, "scikit-learn's gamma, in place of sigma or scale"),
    ("offset", float, "of the polynomial (scale x.y + offset)^degree and of tanh(scale x.y + offset)"),
    ("coef0", float, "scikit-learn's name of offset"),
    ("scale", float, "see offset"),
    ("degree", int, "see offset"),
)  # fmt: skip


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The given ones of these options."""
    return {name: value for name in names if (value := vars(options).get(name)) is not None}


def kernel_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The kernel's parameters that were given."""
    parameters = given(options, *(name for name, *_ in KERNEL_PARAMETERS))
    for name, value in options.param:
        if name in parameters:
            raise Refused(f"the kernel parameter {name!r} is given twice")
        parameters[name] = value
    return parameters


def _add_kernel(command: argparse.ArgumentParser, default: str) -> None:
    kernel = command.add_argument_group("kernel")
    kernel.add_argument("--kernel", help=f"its name ({default}); 'fastkpca kernels' lists them")
    for name, kind, text in KERNEL_PARAMETERS:
        kernel.add_argument(f"--{name}", type=kind, metavar="NUMBER", help=text)
    text = "any other kernel parameter; several numbers with commas, as a width for each column"
    kernel.add_argument("--param", type=_parameter, action="append", default=[], metavar="NAME=VALUE", help=text)


def _add_resources(work: argparse._ActionsContainer) -> None:
    work.add_argument("--threads", type=int, metavar="N", dest="n_threads", help="by default all processors")
    work.add_argument("--memory-limit", type=_memory, metavar="SIZE", help="for example 500M or 4G")
    work.add_argument("--seed", type=int, default=0, help="of the random choices (0)")


def _add_certify(certify: argparse.ArgumentParser) -> None:
    _add_kernel(certify, "gaussian")
    work = certify.add_argument_group("work")
    work.add_argument("--tol", type=float, metavar="T", help=f"{TOL}: a fit follows where one pass does not reach it")
    text = "rows to draw in place of the pass over the kernel values, for wider intervals in a tenth of the time"
    work.add_argument("--rows", type=int, metavar="M", help=text)
    work.add_argument("--guaranteed", action="store_true", help="only intervals that hold for certain")
    text = "the Gram matrix is centred (default), or taken as it is"
    work.add_argument("--center", action=argparse.BooleanOptionalAction, help=text)
    _add_resources(work)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_kernel(fit, "gaussian; with --limits linear or gaussian, whichever finds more simulated faults")
    work = fit.add_argument_group("work")
    text = "subtract the mean of each column and divide by its standard deviation, here and in new rows"
    work.add_argument("--standardize", action=argparse.BooleanOptionalAction, help=text)
    text = f"how many ({DEFAULT_COMPONENTS}), or the fraction of the variance to explain (0.95), or 'all'"
    # no default: a number that was given may be too large, and the default may not
    work.add_argument("-c", "--components", type=_components, default=argparse.SUPPRESS, metavar="C", help=text)
    text = "give each row the N rows before it as further columns, as in temp[-1]: faults in the dynamics show"
    work.add_argument("--lags", type=_whole, default=0, metavar="N", help=text)
    work.add_argument("--tol", type=float, metavar="T", help=TOL)
    work.add_argument("--max-features", type=int, metavar="N", help="at most N features with the intervals that result")
    work.add_argument("--method", help="auto, dense, features or krylov (auto)")
    _add_resources(work)


def _add_output(fit: argparse.ArgumentParser) -> None:
    out = fit.add_argument_group("output")
    out.add_argument("-o", "--output", metavar="MODEL", help="the model for 'fastkpca project'; NAME.mat: for MATLAB")
    out.add_argument("--scores", metavar="FILE", help="the scores: .csv, .csv.gz, .xlsx or .npy; - is standard output")
    _add_digits(out)
    text = "keep control limits in the model, for 'fastkpca monitor': a third of the rows, at most 4096, are held back"
    out.add_argument("--limits", type=_confidence, metavar="C", help=f"{text} from the fit; C as in 0.99")
    out.add_argument("--keep-moments", action="store_true", help="keep the sums that 'fastkpca update' adds rows to")
    out.add_argument("--plot", metavar="FILE", help=f"plot the first two components: {' '.join(PICTURES)}")
    _add_report(out)
