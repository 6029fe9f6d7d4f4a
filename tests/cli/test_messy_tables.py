"""Messy tables as people have them: read rightly, or refused in a sentence whose advice is followed here and works."""

from __future__ import annotations

import datetime
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.cli.tables import read as tables
from fastkpca.cli.tables import text as textfiles
from fastkpca.cli.tables import write
from fastkpca.errors import DataFileError

A = [[1.5, 2000.0], [-3.25, 1234.5], [4.0, 2345678.0]]
OPTIONS = {"--id": "id_column", "--drop-missing": "allow_missing"}


def options_of(advice):
    """The options of ``tables.read`` that a text of the command line gives."""
    words, found = iter(shlex.split(advice.replace("=", " "))), {}
    for word in words:
        name = OPTIONS.get(word, word[2:].replace("-", "_"))
        if name in ("units_row", "allow_missing"):
            found[name] = True
        else:
            value = next(words)
            kinds = {"skip_rows": int, "na_values": lambda x: x.split(","), "skip_columns": lambda x: x.split(",")}
            found[name] = kinds.get(name, str)(value) if name != "header" else value == "yes"
    return found


def of(*lines, end="\n", encoding="utf-8"):
    return "".join(line + end for line in lines).encode(encoding)


ROWS = "1.5,2000", "-3.25,1234.5", "4,2345678"
GERMAN = "1,5;2.000", "-3,25;1.234,5", "4;2.345.678"
READ_AT_ONCE = {
    "plain": (of("a,b", *ROWS), ""),
    "BOM": (of("\ufeffa,b", *ROWS), ""),
    "UTF-16": (of("a,b", *ROWS, encoding="utf-16"), ""),
    "line ends of old Macs": (of("a,b", *ROWS, end="\r"), ""),
    "line ends of Windows": (of("a,b", *ROWS, end="\r\n"), ""),
    "sep=": (of("sep=;", "a;b", *(row.replace(",", ";") for row in ROWS)), ""),
    "all in quotes": (of('"a","b"', *('"' + row.replace(",", '","') + '"' for row in ROWS)), ""),
    "comments": (of("# by a logger", "a,b", ROWS[0], "# paused", *ROWS[1:]), ""),
    "blank lines": (of("", "a,b", "", *ROWS, "", "  "), ""),
    "no header": (of(*ROWS), ""),
    "an end of delimiters": (of("a,b,", *(row + "," for row in ROWS)), ""),
    "counted rows without a name": (of(",a,b", *(f"{i},{row}" for i, row in enumerate(ROWS))), ""),
    "white space": (of("a   b", *(row.replace(",", "    ") for row in ROWS)), ""),
    "German": (of("a;b", *GERMAN), "--decimal , --thousands ."),
    "Swiss": (of("a;b", "1.5;2'000", "-3.25;1'234.5", "4;2'345'678"), "--thousands \"'\""),
    "Swiss, another sign": (of("a;b", "1.5;2’000", "-3.25;1’234.5", "4;2’345’678"), "--thousands \"'\""),
    "French": (of("a;b", "1,5;2\u202f000", "-3,25;1\u00a0234,5", "4;2 345 678"), '--decimal , --thousands " "'),
    "American": (of("a,b", '1.5,"2,000"', '-3.25,"1,234.5"', '4,"2,345,678"'), "--thousands ,"),
    "a row of units": (of("a,b", "°C,bar", *ROWS), "--units-row"),
    "a row of units with a gap": (of("a,b", "°C,", *ROWS), "--units-row"),
    "units and titles": (of("Plant 7", "of March", "", "a,b", "m,s", *ROWS), "--skip-rows 3 --units-row"),
    "own words for missing values": (of("a,b", *ROWS, "Bad,1", "---,---"), "--na-values=Bad,--- --drop-missing"),
    "a number for missing values": (of("a,b", *ROWS, "-999,1", "2,-999.0"), "--na-values=-999 --drop-missing"),
    "dates, day first": (
        of("t,a,b", *(f"{i}/12/2026 06:00,{row}" for i, row in enumerate(ROWS, 1))), "--id t --date-format day-first",
    ),
}  # fmt: skip


@pytest.fixture(params=["small files", "large files"])
def reader(request, monkeypatch):
    """csv of the standard library reads small files, pandas large ones."""
    if request.param == "large files":
        monkeypatch.setattr(textfiles.os.path, "getsize", lambda path: textfiles.SMALL_FILE + 1)


def rows_of(path, options):
    table = tables.read(path, **options_of(options))
    return tables.without_missing(table, "file") if "--drop-missing" in options else table


@pytest.mark.parametrize("kind", READ_AT_ONCE)
def test_read_rightly(tmp_path, reader, kind):
    content, options = READ_AT_ONCE[kind]
    (tmp_path / "x.csv").write_bytes(content)
    table = rows_of(tmp_path / "x.csv", options)
    np.testing.assert_array_equal(table.X, A)
    assert table.names == (None if kind == "no header" else ["a", "b"])


ADVISED = {
    "German": (of("a;b", *GERMAN), "", "--decimal , --thousands ."),
    "German, with --decimal ,": (of("a;b", *GERMAN), "--decimal ,", "--thousands ."),
    "Swiss": (READ_AT_ONCE["Swiss"][0], "", "--thousands \"'\""),
    "French": (READ_AT_ONCE["French"][0], "", '--decimal , --thousands " "'),
    "American": (READ_AT_ONCE["American"][0], "", "--thousands ,"),
    "decimal commas": (of("a;b", "1,5;2000", "-3,25;1234,5", "4;2345678"), "", "--decimal ,"),
    "a row of units": (READ_AT_ONCE["a row of units"][0], "", "--units-row"),
    "own words": (of("a,b", *ROWS, *["1,2"] * 60, "Bad,1"), "", "--na-values=Bad"),
    "missing values": (of("a,b", *ROWS, "NA,1"), "", "--drop-missing"),
    "a title": (of("Plant 7 of March", "", "x,a,b", *(f"1,{row}" for row in ROWS)), "", "--skip-rows 2"),
    "names of rows": (of("who,a,b", *(f"{who},{row}" for who, row in zip("uvw", ROWS))), "", "--id who"),
    "a column of words": (of("a,b,kind", *(f"{row},u" for row in ROWS)), "", "--skip-columns kind"),
    "years over rows": (of("1990,1991,1992", "0.5,2,3", "1,1.5,2000"), "--header yes", ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", ADVISED)
def test_advice_works(tmp_path, reader, kind):
    content, given, advice = ADVISED[kind]
    (tmp_path / "x.csv").write_bytes(content)
    if advice:
        with pytest.raises(DataFileError) as refused:
            rows_of(tmp_path / "x.csv", given)
        assert f"{advice} " in f"{refused.value} ".replace(")", " ")
    more = "--drop-missing" if kind == "own words" else ""
    table = rows_of(tmp_path / "x.csv", f"{given} {advice} {more}")
    expected = A if advice else [[2, 3], [1.5, 2000]]
    np.testing.assert_array_equal(np.asarray(table.X)[:3, -2:], expected)


REFUSED = {
    "percent": (of("a,b", "1 %,2", "3.5%,4"), r"numbers with '%'\? write them without it"),
    "units in the cells": (of("a,b", "1 kg,2", "3.5 kg,4"), r"numbers with 'kg'\? write them without it"),
    "ragged": (of("a,b", *ROWS, "1,2,3"), "line 5 has 3 columns where the first line of data has 2"),
    "a quotation mark that stays open": (of("a,b", *ROWS, '1,"2'), "line 5 opens a quotation mark that is not closed"),
    "grouped wrongly": (of("a;b", "1.5;2'00", "3.5;1'000"), "line 2, column 2", "--thousands \"'\""),
    "decimal commas with --thousands ,": (of("a;b", "1,5;2"), "line 1|not numeric: column 1|line 2", "--thousands ,"),
    "another date": (of("t,a", "13/12/2026,1", "2/30/2026,2"), r"line 3: '2/30/2026' is no time of the form --date",
                     "--id t --date-format day-first"),
    "skipped whole": (of("a,b", *ROWS), "no line with data after the 9 that are skipped", "--skip-rows 9"),
    "a number that is no number": (of("a,b", *ROWS, "1_000,2"), "'1_000' is not a number"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(tmp_path, reader, kind):
    content, match, *given = REFUSED[kind]
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DataFileError, match=match) as refused:
        rows_of(tmp_path / "x.csv", given[0] if given else "")
    assert "\n" not in str(refused.value)


WORDS = ["u", "v w", '"a,b"', '"l\nm"', '"q""r"', "#z", "", " "]
SLIPS = ["", "NA", "nan", "inf", "x", "1_0", "1e400", "#c", '"', '5" pipe', '"a\nb"', "'1'", " "]


def messy(rng):
    """(a text table with slips of all kinds, which of its columns are words)."""
    delimiter, width = rng.choice([",", ";", "\t", " "]), int(rng.integers(1, 6))
    words = rng.random(width) < 0.25

    def cell(is_word):
        if rng.random() < 0.01:
            return rng.choice(SLIPS)
        number = repr(float(rng.choice([rng.random(), rng.integers(-99, 99), rng.random() * 1e-9])))
        return rng.choice(WORDS if is_word else [number] * 8 + [f" {number}", f"{number} ", f'"{number}"'])

    lines = [delimiter.join(f"c{i}" for i in range(width))] * int(rng.integers(2))
    for _ in range(int(rng.integers(1, 60))):
        row = [cell(is_word) for is_word in words] + ["1"] * (rng.random() < 0.003)
        lines.append(delimiter.join(row[:-1] if rng.random() < 0.003 else row))
        lines += [rng.choice(["", "  ", "# a, b", "\t", "  # c"])] * (rng.random() < 0.02)
    return rng.choice(["\n", "\r\n", "\r"]).join(lines) + "\n", np.flatnonzero(words) + 1


def test_small_and_large_files_are_read_alike(tmp_path, attack, monkeypatch):
    """csv of the standard library reads the ones and pandas the others: the same values, names and lines, or the same
    refusal."""
    rng, path, read = attack.rng("messy tables"), tmp_path / "x.csv", 0
    for _ in range(attack.count(5000)):
        content, words = messy(rng)
        path.write_text(content, newline="")
        named, *skipped = map(str, words) if len(words) and rng.random() < 0.5 else (None, *map(str, words))
        options = {"id_column": named, "skip_columns": skipped or None, "allow_missing": rng.random() < 0.7}
        found = []
        for size in (len(content), textfiles.SMALL_FILE + 1):
            monkeypatch.setattr(textfiles.os.path, "getsize", lambda path, size=size: size)
            try:
                table = tables.read(path, **options)
            except DataFileError as error:
                found.append(str(error))
            else:
                lines = table.lines(np.arange(table.n_rows))
                found.append((np.asarray(table.X).tobytes(), np.array(table.identifiers).tolist(), lines))
                read += 1
        assert found[0] == found[1], content
    assert read > attack.count(5000) // 3


def test_missing_words_are_faults_where_values_may_not_be_missing(tmp_path, reader):
    (tmp_path / "x.csv").write_bytes(of("a,b", *ROWS, "-999,1"))
    assert tables.read(tmp_path / "x.csv").X[3, 0] == -999
    with pytest.raises(DataFileError, match=r"line 5, column 1 \('a'\): missing value \('-999'\)"):
        tables.read(tmp_path / "x.csv", na_values=["-999"])


def test_a_hundred_thousand_columns(tmp_path, reader):
    X = np.random.default_rng(0).integers(0, 99, (3, 100_000))
    np.savetxt(tmp_path / "x.csv", X, "%d", ",", header=",".join(f"g{i}" for i in range(100_000)), comments="")
    np.testing.assert_array_equal(tables.read(tmp_path / "x.csv").X, X)


# ---- workbooks and databases -----------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    """book(sheets) -> path of a workbook with these rows."""
    openpyxl = pytest.importorskip("openpyxl")

    def make(**sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for title, rows in sheets.items():
            sheet = made.create_sheet(title)
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / "x.xlsx")
        return tmp_path / "x.xlsx"

    return make


def test_a_workbook(book):
    day = datetime.datetime(2026, 3, 1, 6)
    rows = [[day, 1.5, 2000], [day, -3.25, 1234.5], [], [day, 4, 2345678]]
    table = tables.read(book(data=[["t", "a", "b"], *rows], empty=[]), id_column="t")
    assert table.X.tolist() == A and table.names == ["a", "b"] and table.identifiers[0] == "2026-03-01 06:00:00"
    path = book(data=[["Plant 7"], [], ["t", "a", "b"], ["", "m", "s"], *rows], more=[["x"], [1]])
    with pytest.raises(DataFileError, match="several sheets; choose one with --sheet: data, more$"):
        tables.read(path)
    with pytest.raises(DataFileError, match="no sheet called 'Data'; choose one with --sheet: data, more$"):
        tables.read(path, sheet="Data")
    with pytest.raises(DataFileError, match="--skip-rows 2 begins with line 3"):
        tables.read(path, sheet="data")
    table = tables.read(path, sheet="data", skip_rows=2, units_row=True, id_column="t")
    assert table.X.tolist() == A and table.lines(np.array([0, 2])) == [5, 8]
    path = book(first=[["a", "b"], [1, 2]])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = members["xl/worksheets/sheet1.xml"].replace(b'r="2"', b'r="99999999999"')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(DataFileError, match="has no line with data|no column holds numbers|a header but no"):
        tables.read(path)  # at once
    assert tables.read(book(late=[[], ["a", "b"], [1, 2]])).X.tolist() == [[1, 2]]
    # text in cells is read as in a text file, numbers are numbers whatever the decimal sign
    assert tables.read(book(data=[["a", "b"], ["1,5", 2.5]]), decimal=",").X.tolist() == [[1.5, 2.5]]
    with pytest.raises(DataFileError, match=r"line 3, column 1 \('a'\): missing value \('#N/A'\)"):
        tables.read(book(data=[["a", "b"], [1, 2], ["#N/A", 3], [4, None]]))
    gaps = tables.read(path, allow_missing=True).X
    np.testing.assert_array_equal(gaps, [[1, 2], [np.nan, 3], [4, np.nan]])


def test_workbooks_that_are_none(book, tmp_path):
    for content in (b"PK\3\4 no zip file", b"a,b\n1,2\n"):
        (tmp_path / "y.xlsx").write_bytes(content)
        if content.startswith(b"PK"):
            with pytest.raises(DataFileError, match="not a readable spreadsheet"):
                tables.read(tmp_path / "y.xlsx")
    path = book(data=[["a"], [1]])
    whole = path.read_bytes()
    for cut in (100, len(whole) // 2, len(whole) - 30):
        (tmp_path / "y.xlsx").write_bytes(whole[:cut])
        with pytest.raises(DataFileError, match="not a readable spreadsheet"):
            tables.read(tmp_path / "y.xlsx")
    with pytest.raises(DataFileError, match="no sheet with data"):
        tables.read(book(empty=[]))
    large = book(data=[[i, i] for i in range(2000)])
    with pytest.raises(DataFileError, match=r"MB unpacked, .*; save the sheet as .csv.*or raise --memory-limit"):
        tables.read(large, memory=1e5)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(DataFileError, match="is not a spreadsheet .*; leave out --sheet"):
        tables.read(tmp_path / "t.csv", sheet="data")


def test_a_database(tmp_path):
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute('create table "t 1" (who text, a real, b real)')
        connection.executemany('insert into "t 1" values (?, ?, ?)', [("u", *A[0]), ("v", *A[1]), ("w", *A[2])])
    connection.close()
    table = tables.read(path, id_column="who")
    assert table.X.tolist() == A and table.identifiers.tolist() == ["u", "v", "w"]
    assert tables.read(path, query='select b, a from "t 1" where a > 1').X.tolist() == [[2000, 1.5], [2345678, 4]]
    with pytest.raises(DataFileError, match="cannot be read: near"):
        tables.read(path, query="selekt")
    with pytest.raises(DataFileError, match="cannot be read: attempt to write"):
        tables.read(path, query='delete from "t 1"')
    with sqlite3.connect(path) as connection:
        connection.execute("create table more (x real)")
    connection.close()
    with pytest.raises(DataFileError, match="say which rows with --query 'select ...'; it has more, t 1"):
        tables.read(path)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(DataFileError, match="is not a database; leave out --query"):
        tables.read(tmp_path / "t.csv", query="select 1")
    with pytest.raises(DataFileError, match="is a database file and names no arrays; leave out --var x"):
        tables.read(path, var="x")
    np.save(tmp_path / "t.npy", np.eye(3))
    for option, value in (("sheet", "data"), ("query", "select 1")):
        with pytest.raises(DataFileError, match=f"leave out --{option}"):
            tables.read(tmp_path / "t.npy", **{option: value})


def test_a_database_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "x.db"  # it is known by its contents
    with duckdb.connect(path) as connection:
        connection.execute("create table t (time timestamp, a decimal(9, 2), b double)")
        connection.executemany("insert into t values (timestamp '2026-01-01 06:00', ?, ?)", A)
    table = tables.read(path, id_column="time")
    assert table.X.tolist() == A and table.names == ["a", "b"]
    assert table.identifiers.tolist() == ["2026-01-01 06:00:00"] * 3
    assert tables.read(path, query="select b, a from t where a > 1").X.tolist() == [[2000, 1.5], [2345678, 4]]
    with pytest.raises(DataFileError, match="not numeric: column 1 .'time'.*--id takes names of the rows"):
        tables.read(path)
    with pytest.raises(DataFileError, match="cannot be read: .*read-only"):
        tables.read(path, query="delete from t")
    with duckdb.connect(path) as connection:
        connection.execute("create view v as select 1 as x")
    with pytest.raises(DataFileError, match="say which rows with --query 'select ...'; it has t, v"):
        tables.read(path)


def test_a_database_by_its_address(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(DataFileError, match=r"needs sqlalchemy \(pip install sqlalchemy\)"):
        tables.read("postgresql://plant/x", query="select 1")
    engine = types.SimpleNamespace(raw_connection=lambda: sqlite3.connect(":memory:"))
    monkeypatch.setitem(sys.modules, "sqlalchemy", types.SimpleNamespace(create_engine=lambda url: engine))
    with pytest.raises(DataFileError, match="is a database: say which rows with --query 'select ...'$"):
        tables.read("postgresql://plant/x")
    table = tables.read("postgresql://plant/x", query="select 1.5 as a, 2 as b union select 3, 4")
    assert table.X.tolist() == [[1.5, 2], [3, 4]] and table.names == ["a", "b"]


def test_a_url_of_sqlalchemy(tmp_path):
    pytest.importorskip("sqlalchemy")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("create table t (a real, b real)")
        connection.executemany("insert into t values (?, ?)", A)
    connection.close()
    url = f"sqlite:///{tmp_path}/x.db"
    assert tables.read(url, query="select * from t").X.tolist() == A
    with pytest.raises(DataFileError, match="cannot be read: unable to open database file"):
        tables.read(url.replace("x.db", "no/x.db"), query="select * from t")


def test_passwords_are_not_shown(fails, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    err = fails("fit", "postgresql://me:secret@plant/x", "--query", "select 1")
    assert "postgresql://...@plant/x" in err and "secret" not in err


# ---- what is written, and what a model remembers ---------------------------------------------------------------------


def test_digits_and_decimals(tmp_path):
    scores = np.array([[1234567.0, 1e-9 / 3], [np.nan, np.nan]])
    names = ("who, when", np.array(["a;b", "c"], dtype=object))
    for form, expected in (
        (write.Format(), '"who, when",PC1,PC2\na;b,1234567.0,%r\nc,,\n' % (1e-9 / 3)),
        (write.Format(3, ","), 'who, when;PC1;PC2\n"a;b";1,23e+06;3,33e-10\nc;;\n'),
    ):
        write.write_scores(tmp_path / "s.csv", scores, True, names, form)
        assert (tmp_path / "s.csv").read_text() == expected


def test_scores_in_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    scores = np.array([[1 / 3, 2.0], [np.nan, np.nan], [-1.0, 1e300]])
    names = ("who", np.array(["=1+1", "b\0", "c"], dtype=object))
    write.write_scores(tmp_path / "s.xlsx", scores, False, names)
    sheet = openpyxl.load_workbook(tmp_path / "s.xlsx").active
    rows = list(sheet.values)
    assert rows[0] == ("who", "PC1", "PC2") and rows[2] == ("b\ufffd", None, None)
    assert sheet["A2"].data_type == "s" and rows[1] == ("=1+1", 1 / 3, 2)
    assert tables.read(tmp_path / "s.xlsx", id_column="who", allow_missing=True).X[2].tolist() == [-1.0, 1e300]


def german(path, n, seed, days="12.2026"):
    """A file as a plant in Germany writes it."""
    X = np.random.default_rng(seed).standard_normal((n, 3)) * [1, 1, 400] + [0, 0, 5000]
    lines = ["Anlage 7", "Datum;Druck;Temp;Strom", ";bar;°C;A"]
    for i, row in enumerate(X):
        cells = [f"{x:,.3f}".translate(str.maketrans(",.", ".,")) for x in row]
        lines.append(";".join([f"{1 + i // 24:02d}/{days.replace('.', '/')} {i % 24:02d}:00", *cells]))
    lines[9] = lines[9].rpartition(";")[0] + ";Ausfall"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return X.round(3)


OF_GERMAN = [
    "--skip-rows", "1", "--units-row", "--decimal", ",", "--thousands", ".", "--na-values", "Ausfall", "--id", "Datum",
    "--date-format", "day-first",
]  # fmt: skip


def test_a_model_remembers_how_its_file_was_read(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    german(tmp_path / "x.csv", 240, 0)
    new = german(tmp_path / "new.csv", 48, 1)
    fit = ["fit", "x.csv", *OF_GERMAN, "--drop-missing", "--limits", "0.9", "--keep-moments", "-c", "2"]
    assert run(*fit, "-o", "m.kpca", "--scores", "s.csv", "--quiet")[0] in (0, 5)
    head, first = (tmp_path / "s.csv").read_text().splitlines()[:2]
    assert head.startswith("Datum;PC1;PC2") and re.fullmatch(r"2026-12-01 00:00:00;-?\d,\d{1,9}(;-?\d+,\d+)+", first)
    model = fk.load("m.kpca")
    code, out, err = run("project", "m.kpca", "new.csv", "--drop-missing", "--digits", "17")
    assert code == 0, err
    lines = [line.split(";") for line in out.splitlines()]
    assert lines[0][:2] == ["Datum", "PC1"] and lines[7][1:] == [""] * model.n_components
    found = np.array([[float(x.replace(",", ".")) for x in line[1:]] for line in lines[1:] if line[1]])
    kept = np.delete(np.arange(48), 6)
    np.testing.assert_allclose(found, fk.kpca_project(model, new[kept]), rtol=1e-9, atol=1e-12)
    told = run("info", "m.kpca")[1]
    assert "--decimal=, --thousands=. --na-values=Ausfall --skip-rows=1 --units-row --date-format=day-first" in told
    code, out, err = run("monitor", "m.kpca", "new.csv", "--drop-missing", "--json", "-o", "rows.csv")
    assert code in (0, 3, 5) and json.loads(out)["rows"] == 47
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("2026-12-01 00:00:00;")
    code, _, err = run("update", "m.kpca", "new.csv", "--drop-missing", "--quiet")
    assert code == 0, err
    assert run("project", "m.kpca", "new.csv", "--drop-missing", "--quiet")[0] == 0  # the updated model remembers, too
    # what is given wins; a file without that column needs none
    (tmp_path / "plain.csv").write_text("Druck,Temp,Strom\n0.5,0.25,5001.5\n")
    given = ["--decimal", ".", "--skip-rows", "0", "--no-units-row"]
    code, out, err = run("project", "m.kpca", "plain.csv", *given)
    assert code == 0 and out.startswith("PC1,PC2"), err


def test_a_model_without_names_remembers_its_columns(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((60, 4))
    np.savetxt("x.csv", np.c_[np.arange(60) % 2, X], delimiter=",")
    np.savetxt("narrow.csv", X[:, :3], delimiter=",")
    for chosen in (["--columns", "2-4"], ["--skip-columns", "5", "--label-column", "1"]):
        assert run("fit", "x.csv", *chosen, "-c", "2", "-o", "m.kpca", "--force", "--quiet") == (0, "", "")
        wide, narrow = (run("project", "m.kpca", name) for name in ("x.csv", "narrow.csv"))
        assert wide == narrow and wide[0] == 0


def test_what_a_model_remembers_may_be_damaged(fails, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("x.csv", np.random.default_rng(0).standard_normal((20, 2)), delimiter=",", header="a,b", comments="")
    assert run("fit", "x.csv", "-o", "m.kpca", "--quiet")[0] == 0
    model = fk.load("m.kpca")
    for text in ("--decimal=x", "--decimal", "--what=1", "'", "words", 7, "--skip-rows=-1", "--skip-rows=x", "--help",
                 "--columns=1 --skip-columns=2", "x" * 99999):  # fmt: skip
        model.info["reading"] = text
        fk.save(model, "bad.kpca", overwrite=True)
        assert "bad.kpca is damaged" in fails("project", "bad.kpca", "x.csv")


def test_signs_that_are_both(fails, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_bytes(of("a;b", *GERMAN))
    assert "; give --decimal ," in fails("fit", "x.csv", "--thousands", ".")
    assert run("fit", "x.csv", "--thousands", ".", "--decimal", ",", "--standardize", "-c", "1", "--quiet") == (
        0,
        "",
        "",
    )


def test_pandas_is_not_imported_by_the_way():
    code = (
        "import sys, fastkpca, fastkpca.cli.commands; assert not {'pandas', 'openpyxl', 'sqlite3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
