"""Data files: what reads, reads exactly; what does not says in one line where and what to do."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib.util
import io
import lzma
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from peak import traced

import fastkpca as fk
from fastkpca.cli.tables import archives, collected
from fastkpca.cli.tables import read as tables
from fastkpca.cli.tables import text as textfiles
from fastkpca.cli.tables import write as scorefiles
from fastkpca.errors import DataFileError
from fastkpca.rows.convert import as_rows
from fastkpca.rows.sources import FileSource, Source


@pytest.fixture
def text(tmp_path):
    def make(content: str | bytes, name: str = "x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.fixture(params=["small files", "large files"])
def reader(request, monkeypatch):
    """csv of the standard library reads small files, pandas large ones."""
    if request.param == "large files":
        monkeypatch.setattr(textfiles.os.path, "getsize", lambda path: textfiles.SMALL_FILE + 1)


def refused(path, match, **options):
    with pytest.raises(DataFileError, match=match) as caught:
        tables.read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


A = [[1.0, 2.5, -3.0], [4.0, 5e-3, 6.25]]
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ""])
def test_compressed_by_content_not_by_name(text, suffix):
    raw = b"a,b,c\n1,2.5,-3\n4,5e-3,6.25\n"
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": gzip.compress}[suffix](raw)
    table = tables.read(text(packed, "x.csv" + suffix))
    np.testing.assert_array_equal(table.X, A)
    assert table.names == NAMES


def test_what_is_not_utf_8_is_windows_1252_and_never_silent(text, reader):
    lines = "# Meßwerte\nT [°C],b,c\n1,2.5,-3\n4,5e-3,6.25\n".encode("cp1252")
    table = tables.read(text(lines))
    assert table.names == ["T [°C]", "b", "c"]
    assert table.notes == ["line 2 is not UTF-8: the file is read as Windows-1252 (Western European)"]
    np.testing.assert_array_equal(table.X, A)
    correct = tables.read(text("T [°C],b,c\n1,2.5,-3\n4,5e-3,6.25\n".encode()), like=table.names)
    assert correct.notes == [] and correct.names == table.names
    with_control = text(b"a,b\x81\n1,2\n", "control.csv")
    refused(with_control, "control.csv: line 1 is not Windows-1252; save the file as UTF-8")
    pytest.importorskip("pandas")
    people = text("a,b,who\n1,2.5,García\n4,3,€uro\n".encode("cp1252"), "p.csv")
    table = tables.read(people, id_column="who")
    assert table.identifiers.tolist() == ["García", "€uro"] and "line 2 is not UTF-8" in table.notes[0]
    late = text(("a,b,who\n" + "1,2.5,x\n" * 99 + "4,3,García\n").encode("cp1252"), "late.csv")
    for beside in ("id_column", "label_column"):
        refused(late, "late.csv: line 101 is not UTF-8; save the file as UTF-8", **{beside: "who"})
    assert tables.read(late, skip_columns=["who"]).X.shape == (100, 2)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_random_tables_come_back_bit_for_bit(tmp_path, attack, reader, delimiter):
    """Those between semicolons with decimal commas."""
    rng = attack.rng("csv tables" + delimiter)
    path, decimal = tmp_path / "x.csv", "," if delimiter == ";" else "."
    for _ in range(attack.count(500)):
        shape = (int(rng.integers(1, 80)), int(rng.integers(1, 9)))
        bits = rng.integers(0, 1 << 64, shape, dtype=np.uint64).view(np.float64)
        X = np.where(np.isfinite(bits), bits, 0.5)
        header = rng.random() < 0.5
        lines = [delimiter.join(f"v{i}" for i in range(shape[1]))] * header
        lines += [delimiter.join(map(repr, row)) for row in X.tolist()]
        path.write_text("\n".join(lines).replace(".", decimal) + "\n")
        table = tables.read(path, decimal=decimal)
        assert table.X.tobytes() == X.tobytes()
        assert (table.names is not None) == header


def test_without_pandas_everything_is_read(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setattr(textfiles, "SMALL_FILE", 0)
    table = tables.read(text(IRIS), label_column="species")
    assert table.X.shape == (3, 2) and table.labels.tolist() == ["setosa", "setosa", "virginica"]
    assert table.notes == ["with pandas 3.1 installed, files of this size are read several times faster"]
    refused(text("a,b\n1,2\n3,\n"), r"line 3, column 2 \('b'\): missing value")
    refused(text('1\n"\n-16"\n3\n'), r"line 2, column 1: '\\n-16' is not a number")


def test_a_field_in_quotes_may_have_several_lines(text, reader):
    path = text('a,note,b\n1,plain,2\n3,"first\n\nlast, and ""more""",4\n5,,x\n6,z,7\n')
    refused(path, r"line 6, column 3 \('b'\): 'x' is not a number", skip_columns=["note"])
    table = tables.read(text(path.read_text().replace("x", "8")), id_column="note")
    assert table.X.tolist() == [[1, 2], [3, 4], [5, 8], [6, 7]] and table.identifiers[2] == ""
    assert table.lines(np.array([1, 2])) == [3, 6]
    refused(text('a,b\n1,2\n3,"4\n5,6\n'), "line 3 opens a quotation mark")


@pytest.mark.parametrize(
    "content", ['"u\nv",1,2\nw,3,4\n', 'who,a,b\n"u\nv",1,2\nw,3,4\n', '"w\nho",a,b\n"u\nv",1,2\nw,3,4\n']
)
def test_a_field_in_quotes_may_have_several_lines_in_the_first_rows(text, reader, content):
    table = tables.read(text(content), id_column="1")
    assert table.X.tolist() == [[1, 2], [3, 4]] and table.identifiers.tolist() == ["u\nv", "w"]
    refused(text(content.replace("4", "x")), "column 3.*'x' is not a number", id_column="1")


def test_faults_at_the_borders_of_blocks(text):
    """pandas reads 2^16 rows at a time: the first line of a block is checked as any other."""
    rows = 65_536
    head = "a,b,c\n" + "1,2,x\n" * rows
    refused(text(head + "1,2,x,3\n"), f"line {rows + 2} has 4 columns", columns=["a", "b"])
    refused(text(head + "1,2\n"), f"line {rows + 2} has 2 columns", columns=["a", "b"])
    table = tables.read(text(head + "# comment\n3,4,\n"), columns=["a", "b"], label_column="c")
    assert table.X.shape == (rows + 1, 2) and table.X[-1].tolist() == [3, 4]
    assert table.labels[-2:].tolist() == ["x", ""]


def test_comments_and_blank_lines_anywhere(text):
    lines = ["a\tb"] + [f"{i}\t#{i}" for i in range(60_000)]
    expected = [f"#{i}" for i in range(60_000)]
    for i in range(50, 60_000, 997):
        lines[i] += "\n  # a comment, with a comma\n\t\n \n"
    table = tables.read(text("\n".join(lines)), label_column="b")
    np.testing.assert_array_equal(table.X.ravel(), np.arange(60_000))
    assert table.labels.tolist() == expected


@pytest.mark.parametrize("options", [{"id_column": "who"}, {"skip_columns": ["who"]}, {"label_column": "who"}])
@pytest.mark.parametrize("mark", ["#", " #", "\t# "])
def test_a_comment_with_as_many_fields_as_a_row(text, reader, mark, options):
    table = tables.read(text(f"who,a,b\nu,1,2\n{mark}v,3,4\nw,5,6\n"), **options)
    assert table.X.tolist() == [[1, 2], [5, 6]] and table.lines(np.array([0, 1])) == [2, 4]


# ---- what is wrong with a text file ----------------------------------------------------------------------------------

GAPS_ALLOWED = {"allow_missing": True}
THOUSANDS = r"'125,730' \(a thousands comma\? --thousands , reads it as one; or a decimal comma\? --decimal , does\)$"
YEARS, COMMAS = "id,2019,2020,2021\n7,1,2,3\n9,1,2,5\n", {"decimal": ","}
NO_DECIMALS = "leave out --decimal , where commas separate columns"
IRIS = "sepal length,width,species\n" + "5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.0,virginica\n"


@pytest.mark.parametrize(
    ("content", "options", "match"),
    [
        ("a,b\n1,2\n3,\n", {}, r"line 3, column 2 \('b'\): missing value; drop or fill in"),
        ("a,b\n1,2\n\n# c\n,4\n5,6\n", {}, r"line 5, column 1 \('a'\): missing value"),
        ("1,2\n3,NA\n", {}, r"line 2, column 2: missing value \('NA'\)"),
        ("NA,2\n3,4\n5,6\n", {}, r"line 1, column 1: missing value"),
        ("1,2\n3,nan\n", {}, r"line 2, column 2: missing value \('nan'\)"),
        ("1,2\n3,?\n", {}, r"line 2, column 2: missing value"),
        ("1,2,3\n3,#N/A,4\n", {}, r"line 2, column 2: missing value"),
        ("1,2\n3,inf\n", {}, "line 2, column 2: inf is not a finite number"),
        ("1,2\n3,1e400\n", {}, "line 2, column 2: 1e400 is not a finite number"),
        ("1,2\n3,4x\n5,6\n", {}, "line 2, column 2: '4x' is not a number"),
        ("1,2\n3,1_000\n5,6\n", {}, "line 2, column 2: '1_000' is not a number"),
        ("1,2.x\n3,4\n5,6\n", {}, "line 1, column 2: '2.x' is not a number"),
        ("1,2\n3,4,5\n", {}, "line 2 has 3 columns where the first line of data has 2"),
        ("a,b\n1,2\n3\n4,5\n6,7\n", {}, "line 3 has 1 columns where the first line of data has 2"),
        ("a,b,c,d\n1,2\n3,4\n", {}, r"the header \(line 1\) has 4 columns, the first line of data has 2"),
        (
            IRIS,
            {},
            r"not numeric: column 3 \('species'\), for example 'setosa' \(--id .*\); leave out with "
            "--skip-columns species$",
        ),
        ("5.1,3.5,setosa\n4.9,3.0,versicolor\n", {}, r"not numeric: column 3, for example 'setosa'.*--skip-columns 3$"),
        ("x y,b,c\nu,v,1\nw,z,2\n", {}, '--skip-columns "x y,b"'),
        ("1,5;2,5\n3,5;4,5\n", {}, "a decimal comma\\? --decimal , reads it"),
        ("2020-01-01,1\n2020-01-02,2\n", {}, "not numeric: column 1, for example '2020-01-01'"),
        ("", {}, "is empty"),
        ("\n\n", {}, "no line with data"),
        ("# only\n# comments\n", {}, "no line with data"),
        ("a,b\n", {}, "has a header but no line with data"),
        (b"\x00\x01\x02\x03" * 50, {}, "not a text file"),
        ("PK\x03\x04 no zip file", {}, "not a readable .npz file"),
        ('1,"' + "x" * 200_000 + "\n", {}, "line 1 opens a quotation mark that is not closed"),
        ("1," + "x" * 200_000 + "\n", {}, "not numeric: column 2"),
        ('1\n"\n-16\n', {}, "line 2 opens a quotation mark that is not closed"),
        ("u,v\nw,z\nu,v\n", {}, "no column holds numbers$"),
        ("a,1\nb,2\nc,3\n", {}, r"\(the names of the rows\? --id 1 takes them\); leave out with --skip-columns 1$"),
        (
            "a;2020\n1,5;2,5\n3,5;4,5\n",
            {},
            r"column 1 \('a'\), column 2 \('2020'\), for example '1,5' \(a decimal comma\?[^-]*--decimal , reads it\)$",
        ),
        *(
            (f'a,b\n1,"{x}"\n2,"{y}"\n3,"{x}"\n', {}, rf"\({said}.*\); leave out with --skip-columns b$")
            for x, y, said in (
                ("12 %", "3.5%", "numbers with '%'\\? write them without it"),
                ("5 kg", "6.25 kg", "numbers with 'kg'\\?"),
                ("$5", "$6.20", "numbers with '\\$'\\?"),
                ("10.5°C", "-3°C", "numbers with '°C'\\?"),
                ("5 kg", "6 lb", "--id takes names of the rows"),
                ("A1", "A2", "--id takes names of the rows"),
            )
        ),
        *(
            (f'a,b\n1,"{x}"\n2,"{y}"\n3,"{x}"\n', {}, rf"\(a thousands separator\? {said} reads it\)$")
            for x, y, said in (
                ("2,901.37", "1,004.00", "--thousands ,"),
                ("1'234", "2'345'678.5", '--thousands "\'"'),
                ("1\u202f234,5", "12\u202f345", '--decimal , --thousands " "'),
            )
        ),
        ('a,b\n"125,730",1\n"99,100",2\n', {}, THOUSANDS),
        ("a;b\n125,730;1\n1,099,100;2\n", {}, THOUSANDS),
        (
            "id;U;G\na0;9,00;0,5\na1;9,01;1,5\n",
            {},
            r"column 2 \('U'\), column 3 \('G'\), for example '9,00' \(a decimal "
            r"comma\?.*\); not numeric: column 1 \('id'\), for example 'a0' \(.*--id id takes them\)$",
        ),
        ("\n".join([",".join(["x"] * 20 + ["1"] + ["x"] * 2 + ["2"])] * 3), {}, "--skip-columns 1-20,22-23$"),
        (IRIS, {"columns": ["widht"]}, "no column 'widht'; did you mean 'width'"),
        (IRIS, {"columns": ["zzz"]}, "no column 'zzz'; there are sepal length, width, species"),
        (IRIS, {"columns": ["4"]}, "no column 4; its columns are numbered 1 to 3"),
        (IRIS, {"columns": ["0"]}, "no column 0"),
        (IRIS, {"columns": ["2-1"]}, "no column 2-1"),
        (IRIS, {"columns": ["1", "1-2"]}, "names a column twice"),
        (IRIS, {"skip_columns": ["1-3"]}, "no column is left"),
        (IRIS, {"columns": ["1"], "skip_columns": ["2"]}, "not both"),
        (IRIS, {"label_column": "1-2"}, "takes one column"),
        (IRIS, {"columns": ["3"]}, "not numeric"),
        (IRIS, {"var": "X"}, "leave out --var"),
        ("a,a\n1,2\n", {"columns": ["a"]}, "columns 1 and 2 are both called 'a'"),
        ("1,2\n3,4\n", {"columns": ["a"]}, r"does not name its columns; give numbers \(1 to 2\)"),
        (YEARS, {"columns": ["2019-2021"]}, "no column 2019-2021; a range is of numbers of columns, here 2-4$"),
        (YEARS, {"columns": ["5-9"]}, "has no column 5-9; its columns are numbered 1 to 4$"),
        ("a,who\n1,u\n2,v\n", {"id_column": "2", "label_column": "who"}, "--id and --label-column both name"),
        ("a,who\n1,u\n2,v\n", {"id_column": "1-2"}, "--id takes one column"),
        ("a,who\n1,u\n3\n", {"id_column": "who"}, "line 3 has 1 columns"),
        # chosen columns alone would not show that a field is missing before them
        ("a,b,c\n1,2,3\n4,5\n", {"columns": ["a", "b"]}, "line 3 has 2 columns"),
        ("a,b,c\n1,2,3\n4,5,6,7\n", {"columns": ["a"]}, "line 3 has 4 columns"),
        ("id,x,y\n1,2.5,3\n2,3.5,4\n", COMMAS, NO_DECIMALS),
        ("1,2,3\n4,5,6\n", COMMAS, NO_DECIMALS),
        ("a,b\n1,2\n3,4\n", COMMAS, NO_DECIMALS),
        ("1.234,5;2\n1;2\n2;2\n", COMMAS, "line 1, column 1"),
        ("a;b\n" + "1;2\n" * 70 + "1;1.050\n", COMMAS, r"line 72, column 2 \('b'\): '1.050' is not a number \(a thous"),
        (
            "a;b\n1.5;2,5\n3.5;4,5\n",
            COMMAS,
            r"line 2, column 1 \('a'\): '1.5' is not a number \(a thousands point, or a "
            r"decimal point\?.* \(the first of 2",
        ),
        ("a,b\n1,2\n,3\n4\n", GAPS_ALLOWED, "line 4 has 1 columns where the first line of data has 2"),
        ("a,b\n1,2\n,3\n4,5,6\n", GAPS_ALLOWED, "line 4 has 3 columns where the first line of data has 2"),
        ("a,b\n1,2\n,3\n4,5x\n", GAPS_ALLOWED, r"^[^;]*x.csv: line 4, column 2 \('b'\): '5x' is not a number$"),
        (
            "a,b\n1,2\n,3\n4,inf\n",
            GAPS_ALLOWED,
            r"^[^;]*: line 4, column 2 \('b'\): inf is not a finite number; drop or rep",
        ),
        ("a,b\n1,x\n,y\n4,\n", GAPS_ALLOWED, "not numeric: column 2"),
    ],
)
def test_faults_of_text_and_of_what_is_asked_of_it(text, reader, content, options, match):
    refused(text(content), match, **options)


BARE, NAMED = {"X": A, "names": None}, {"X": A, "names": NAMES}
OF_IRIS = {"X": [[5.1, 3.5], [4.9, 3.0], [6.1, 2.0]], "names": ["sepal length", "width"]}
SPECIES = ["setosa", "setosa", "virginica"]
PEOPLE = "a,who,b\n1,007,2\n3, x1 ,4\n5,,6\n"
GERMAN = "a;b;c;kind\n1,5;-2,25;3;x,y\n4;,5;1e-3;z\n"


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("1,2.5,-3\n4,5e-3,6.25", {}, BARE),
        ("1;2.5;-3\n4;5e-3;6.25\n", {}, BARE),
        ("1\t2.5\t-3\n4\t5e-3\t6.25\n", {}, BARE),
        ("1 2.5  -3\n  4 5e-3 6.25 \n", {}, BARE),
        ("1, 2.5, -3\n4 ,5e-3 , 6.25\n", {}, BARE),
        ("1,2.5,-3\r\n4,5e-3,6.25\r\n", {}, BARE),
        ("1,2.5,-3\r4,5e-3,6.25\r", {}, BARE),
        ("\n1,2.5,-3\n\n\n4,5e-3,6.25\n\n", {}, BARE),
        ("# a comment, with commas, and more\n1,2.5,-3\n# another\n4,5e-3,6.25\n", {}, BARE),
        ('"1","2.5","-3"\n"4","5e-3","6.25"\n', {}, BARE),
        ("1,2.5,-3,\n4,5e-3,6.25,\n", {}, BARE),
        ("\ufeff1,2.5,-3\n4,5e-3,6.25\n", {}, BARE),
        ("a;b;c\n1;2.5;-3\n4;5e-3;6.25\n", {}, NAMED),
        ("a b c\n1 2.5 -3\n4 5e-3 6.25\n", {}, NAMED),
        ("\ufeffa,b,c\n1,2.5,-3\n4,5e-3,6.25\n", {}, NAMED),
        ("a, b, c\n1, 2.5, -3\n4, 5e-3, 6.25\n", {}, NAMED),
        ("\n\na,b,c\n\n1,2.5,-3\n4,5e-3,6.25\n", {}, NAMED),
        ("a,b,c,\n1,2.5,-3,\n4,5e-3,6.25,\n", {}, NAMED),
        ("a,b,c\n1,2.5,-3,\n4,5e-3,6.25,\n", {}, NAMED),
        ('"a, b","b;","say ""c"""\n1,2.5,-3\n4,5e-3,6.25\n', {}, {"X": A, "names": ["a, b", "b;", 'say "c"']}),
        ("a,#b,1999\n1,2.5,-3\n4,5e-3,6.25\n", {}, {"X": A, "names": ["a", "#b", "1999"]}),
        (",a,b,c\n0,1,2.5,-3\n1,4,5e-3,6.25\n", {}, NAMED),
        ('"a" "b" "c"\n"1" 1 2.5 -3\n"2" 4 5e-3 6.25\n', {}, NAMED),
        ("0,1,2\n1,2.5,-3\n4,5e-3,6.25\n", {}, {"X": A, "names": ["0", "1", "2"]}),
        (",0,1,2\n0,1,2.5,-3\n1,4,5e-3,6.25\n", {}, {"X": A, "names": ["0", "1", "2"]}),
        (',x,y z,"q"""\n0,1,2.5,-3\n1,4,5e-3,6.25\n', {}, {"X": A, "names": ["x", "y z", 'q"']}),  # as pandas writes
        ("größe\tb\tc\n1\t2.5\t-3\n4\t5e-3\t6.25\n".encode("utf-16"), {}, {"X": A, "names": ["größe", "b", "c"]}),
        # few rows and columns
        ("1\n2\n3\n", {}, {"X": [[1], [2], [3]]}),
        ("x\n1\n2\n", {}, {"X": [[1], [2]]}),
        ("1,2\n", {}, {"X": [[1, 2]]}),
        ("a,b\n1,2\n", {}, {"X": [[1, 2]]}),
        # headers
        ("0,1,2\n3,4,5\n", {}, {"X": [[3, 4, 5]]}),
        ("0,1,2\n3,4,5\n", {"header": False}, {"X": [[0, 1, 2], [3, 4, 5]]}),
        ("5,3\n3,4\n", {}, {"X": [[5, 3], [3, 4]]}),
        ("5,3\n3,4\n", {"header": True}, {"X": [[3, 4]], "names": ["5", "3"]}),
        # an unnamed column that counts the rows, or does not
        (",a\n7,1\n8,2\n9,4\n", {}, {"X": [[1], [2], [4]]}),
        (",a\n7,1\n8,2\n9,4\n", {"columns": ["1", "2"]}, {"X": [[7, 1], [8, 2], [9, 4]]}),
        (",a\n7,1\n8,2\n11,4\n", {}, {"X": [[7, 1], [8, 2], [11, 4]]}),
        # columns by name and by number
        (IRIS, {"skip_columns": ["species"]}, OF_IRIS),
        (IRIS, {"skip_columns": ["3"]}, OF_IRIS),
        (IRIS, {"columns": ["1-2"]}, OF_IRIS),
        (IRIS, {"columns": ["sepal length", "width"]}, OF_IRIS),
        (IRIS, {"columns": ["sepal length", "2"]}, OF_IRIS),
        (IRIS, {"label_column": "species"}, OF_IRIS | {"labels": SPECIES}),
        (IRIS, {"columns": ["2", "1"]}, {"X": [row[::-1] for row in OF_IRIS["X"]]}),
        (IRIS, {"columns": ["width"], "label_column": "3"}, {"X": [[3.5], [3.0], [2.0]], "labels": SPECIES}),
        ("0,1,2\n5,6,7\n", {"columns": ["1"], "header": True}, {"X": [[6]]}),  # names before numbers
        # labels are numbers where all are; words may stand further down
        ("y,x\n1,2.5\n-3,4\n", {"label_column": "y"}, {"X": [[2.5], [4]], "labels": [1, -3]}),
        ('1,"a,b"\n2,#c\n', {"label_column": "2"}, {"labels": ["a,b", "#c"]}),
        ("a,y\n" + "1,2\n" * 70 + "3,x\n4,nan\n", {"label_column": "y"}, {"labels": ["2"] * 70 + ["x", "nan"]}),
        # identifiers stay as they stand
        (PEOPLE, {"id_column": "who"}, {"X": [[1, 2], [3, 4], [5, 6]], "names": ["a", "b"]}),
        (PEOPLE, {"id_column": "who"}, {"identifiers": ["007", "x1", ""]}),
        (PEOPLE, {"id_column": "who", "label_column": "b"}, {"X": [[1], [3], [5]], "labels": [2, 4, 6]}),
        # decimal commas, and commas that may be some
        *(
            (GERMAN.replace(";", x), COMMAS | {"label_column": "kind"},
             {"X": [[1.5, -2.25, 3], [4, 0.5, 1e-3]], "names": ["a", "b", "c"], "labels": ["x,y", "z"]})
            for x in ";\t "
        ),
        ("1,2\n3,4\n", COMMAS, {"X": [[1.2], [3.4]]}),
        ("a\n1,2\n", COMMAS, {"X": [[1.2]]}),
        ('"a, cm"\n1,2\n3\n', COMMAS, {"X": [[1.2], [3]]}),
        # U+FFFD stands in many a UTF-8 file for what another program could not read: saving it again is no advice
        ("Gr\ufffde,g\n" + "1,x\n" * 60 + "3,\ufffd\n", {"label_column": "g"},
         {"names": ["Gr\ufffde"], "labels": ["x"] * 60 + ["\ufffd"], "notes": []}),
    ],
)  # fmt: skip
def test_what_is_asked_of_a_text_table(text, reader, content, options, expected):
    table = tables.read(text(content), **options)
    assert table.X.dtype == np.float64
    for name, value in ({"labels": None} | expected if not options else expected).items():
        assert np.asarray(getattr(table, name)).tolist() == value


def test_all_bad_columns_are_named_at_once_with_their_counts(text, reader):
    text_of_error = refused(
        text("a,b,c,d\n1,2,3,4\n,2,x,4\n1,2,y,4\nNA,2,3,inf\n1,2,3,4\n1,2,3,4\n1,2,3,4\n"),
        r"line 3, column 1 \('a'\): missing value \(the first of 2 in this column\); line 3, column 3 \('c'\): 'x' is "
        r"not a number \(the first of 2 in this column\); line 5, column 4 \('d'\): inf is not a finite number; drop "
        "these rows or replace the values first, or leave the columns out with --skip-columns a,c,d$",
    )
    assert "'b'" not in text_of_error


# ---- decimal commas, thousands points, and what they are taken for ---------------------------------------------------


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        ('"b,c"', "1"),
        ("d", "1"),
        ("-b", "1"),
        ('"say ""b"""', "1"),
        ("$b", "1"),
        ("b & c", '"b & c"'),
        ("b&c", '"b&c"'),
        ("größe", "größe"),
        ("b_1.x", "b_1.x"),
    ],
)
def test_columns_to_leave_out_are_said_so_that_they_can_be_typed(text, header, keys):
    """A name that the option would take for several columns, or for another option, or that stands twice, is no key."""
    path = text(f"{header},d,e\nx,1,3\ny,2,4\nx,3,5\n" if header != "d" else "d,d,e\nx,1,3\ny,2,4\nx,3,5\n")
    message = refused(path, "leave out with --skip-columns")
    assert message.endswith(f"--skip-columns {keys}")
    assert tables.read(path, skip_columns=keys.strip('"').split(",")).X.shape == (3, 2)


GAPS = "who,a,b,c\nu,1,2,3\n# note\nv,NA,5,6\nw,7, ,?\n\nx,10,11,12\ny,-,14,n/a \n"


def without_missing(path, **options):
    return tables.without_missing(tables.read(path, allow_missing=True, **options), "file")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rows_with_missing_values_are_left_out(text, reader, delimiter):
    path = text(GAPS.replace(",", delimiter))
    table = without_missing(path, id_column="who")
    np.testing.assert_array_equal(table.X, [[1, 2, 3], [10, 11, 12]])
    assert table.kept.tolist() == [True, False, False, True, False] and table.n_rows == 2
    assert table.identifiers.tolist() == list("uvwxy")
    assert table.notes == ["3 of 5 rows have missing values and are left out: lines 4, 5, 8"]
    commas = text("a;b\n1,5;2,25\n-;3\nNaN;1\n4;5\n", "commas.csv")
    assert without_missing(commas, decimal=",").X.tolist() == [[1.5, 2.25], [4, 5]]
    table = without_missing(path, columns=["b"], label_column="who")
    assert table.X.ravel().tolist() == [2, 5, 11, 14] and table.labels.tolist() == ["u", "v", "x", "y"]
    assert table.notes == ["1 of 5 rows has a missing value and is left out: line 5"]
    with pytest.raises(DataFileError, match="file: every row has a missing value in a column that is taken"):
        without_missing(text("a,b\n,1\n2,\n"))


def test_a_line_of_tabs_is_a_row_of_missing_values(text, reader):
    content = text("a\tb\n1\t2\n\n\t\n3\t4\n \t \r\n", "x.tsv")
    table = without_missing(content)
    assert table.X.tolist() == [[1, 2], [3, 4]] and table.kept.tolist() == [True, False, True, False]
    assert table.notes == ["2 of 4 rows have missing values and are left out: lines 4, 6"]
    assert tables.read(content).n_rows == 2  # empty lines at the end of an export
    named = tables.read(text("a\twho\tb\n1\tu\t2\n\t#v\t3\n \t# \t4\n"), id_column="who", allow_missing=True)
    assert named.identifiers.tolist() == ["u", "#v", "#"] and named.X[:, 1].tolist() == [2, 3, 4]


def in_hdf5(path, X):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["x"] = X


WRITERS = {
    "npy": np.save,
    "npz": lambda path, X: np.savez(path, X=X),
    "mat": lambda path, X: scipy.io.savemat(path, {"X": sp.csc_matrix(X.astype(float))}),
    "parquet": lambda path, X: pytest.importorskip("pandas").DataFrame(X, columns=NAMES).to_parquet(path),
    "h5": in_hdf5,
    "csv": lambda path, X: np.savetxt(path, X.astype(float), delimiter=","),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_rows_with_missing_values_in_files_of_numbers(tmp_path, monkeypatch, in_this_process, kind):
    monkeypatch.setattr(collected, "PAGE_CACHE_BYTES", 1000)  # text goes through a file
    X, path = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32), tmp_path / f"x.{kind}"
    X[[7, 120], [0, 2]] = np.nan
    expected = np.delete(X, [7, 120], axis=0)
    WRITERS[kind](path, X)
    table = without_missing(path)
    np.testing.assert_array_equal(as_rows(table.X).shifted(np.zeros(3)).all(), expected)
    where = "lines 8, 121" if kind == "csv" else "rows 8, 121, counted from 1"
    assert table.notes == [f"2 of 300 rows have missing values and are left out: {where}"]
    if kind == "npy":
        np.save(path, expected)
        whole = tables.read(path)
        assert tables.without_missing(whole, "file") is whole and whole.kept is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_decimal_commas_between_commas(text, reader, end):
    """As spreadsheets on the web write them for Germans."""
    lines = ["a,b,name", '"1,5",2,x', '3,"-2,5e3",y', '"0,25","7",z']
    path = text(end.join(lines))
    table = tables.read(path, decimal=",", id_column="name")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, -2500], [0.25, 7]])
    refused(path, r"for example '1,5' \(a decimal comma\? --decimal , reads it\)", id_column="name")
    path = text(end.join(line.rpartition(",")[0] for line in lines))
    np.testing.assert_array_equal(tables.read(path, decimal=",").X, table.X)


@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
@pytest.mark.parametrize("header", ["a{0}b\n", ""])
def test_a_first_line_that_names_the_separator(text, reader, separator, header):
    lines = f"sep={separator}\n{header}1{separator}2.5\n# a comment\n3{separator}4.5\n".format(separator)
    table = tables.read(text(lines))
    assert table.X.tolist() == [[1, 2.5], [3, 4.5]] and table.names == (["a", "b"] if header else None)
    refused(text(lines + f"x{separator}1\n"), f"line {6 if header else 5}, column 1")
    table = tables.read(text(lines), id_column="1")
    assert table.identifiers.tolist() == ["1", "3"] and table.X.tolist() == [[2.5], [4.5]]


def test_a_column_that_numbers_the_rows_is_noted(text):
    for name in ("id", "ID", "Index"):
        table = tables.read(text(f"{name},x\n7,1.5\n8,2.5\n9,1\n"))
        assert table.X.shape == (3, 2)
        assert table.notes == [f"column 1 ({name!r}) counts as data; --id {name} takes it as the names of the rows"]
        assert tables.read(text(f"{name},x\n7,1.5\n7,2.5\n")).notes == []
        for options in ({"columns": ["1", "2"]}, {"id_column": name}):
            assert tables.read(text(f"{name},x\n7,1.5\n8,2.5\n"), **options).notes == []


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("1990,1991,1992\n0.5,2,3\n4,5,7\n", 2),  # years over measurements
        ("2001,2000,1999\n5,2,3\n4,5,7\n", 2),  # over counts that lie elsewhere
        ("1,2,3\n2.5,1,7\n8,9,9\n", 3),  # might be data: numbers like these lie below
        ("1,2,3\n4,5,6\n7,8,9\n", 3),  # every row counts
        ("1990,1991\n0.5,2\n4,5\n", 3),  # two columns say too little
        ("7,7,7\n0.5,2,1\n4,5,7\n", 3),
    ],
)
def test_a_header_of_years(text, reader, content, rows):
    table = tables.read(text(content))
    assert len(table.X) == rows
    assert (len(table.notes) == 1 and "--header no" in table.notes[0]) == (rows == 2)
    assert table.names == (content.splitlines()[0].split(",") if rows == 2 else None)
    assert len(tables.read(text(content), header=False).X) == 3


def test_many_rows_go_through_a_file(text, reader, monkeypatch):
    """They are a source that is read part by part, and the same numbers."""
    X = np.random.default_rng(3).standard_normal((3000, 4))
    path = text("\n".join(",".join(map(repr, row)) for row in X.tolist()))
    expected = tables.read(path).X
    assert isinstance(expected, np.ndarray)
    monkeypatch.setattr(collected, "PAGE_CACHE_BYTES", 1 << 12)
    rows = tables.read(path).X
    assert isinstance(rows, FileSource) and rows.shape == X.shape
    np.testing.assert_array_equal(rows[:], expected)
    expected, through_file = (fk.kpca(x, "polynomial", 3, degree=2) for x in (expected, rows))
    np.testing.assert_array_equal(expected.eigenvalues, through_file.eigenvalues)
    np.testing.assert_array_equal(expected.score, through_file.score)


def test_faults_far_down_are_named(text, reader):
    """Beyond the lines that the format is told from, and beyond the first block."""
    lines = ["x,y"] + [f"{i},{i}.5" for i in range(10_000)]
    for at, wrong, match in [
        (9_234, "1,NaN", r"line 9235, column 2 \('y'\): missing value"),
        (9_000, "1,2,3", "line 9001 has 3 columns"),
        (100, "oops,1", "line 101, column 1 .'x'.: 'oops' is not a number"),
        (10_000, "1", "line 10001 has 1 columns"),
    ]:
        refused(text("\n".join([*lines[:at], wrong, *lines[at + 1 :]])), match)


def test_damaged_compression(text, reader):
    whole = gzip.compress(b"1,2\n" * 5000)
    refused(text(whole[:-20], "x.csv.gz"), "cannot be read: ")
    refused(text(whole[:12], "x.csv.gz"), "cannot be read: ")
    refused(text(whole[:30] + b"\xff" * 8 + whole[38:], "x.csv.gz"), "cannot be read: |not a number|columns|text")
    refused(text("a,b\n1,2\n".encode("utf-16") + b"\x00\xd8\n\0", "x.txt"), "cannot be read: .*utf-16")


@pytest.mark.parametrize("delimiter", [",", " "])
def test_tens_of_thousands_of_columns(text, reader, delimiter):
    rng = np.random.default_rng(0)
    X, names = rng.standard_normal((3, 10_000)), [f"gene_number_{i}" for i in range(10_000)]
    order = rng.permutation(10_000)
    lines = [delimiter.join(f'"{names[i]}"' for i in order)]
    lines += [delimiter.join(map(repr, row)) for row in X[:, order].tolist()]
    assert min(map(len, lines)) > csv.field_size_limit()
    path = text("\n".join(lines))
    table = tables.read(path, like=names)
    np.testing.assert_array_equal(table.X, X)
    assert table.names == names


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_column_of_long_texts_is_left_out_like_any_other(text, reader, delimiter):
    limit = csv.field_size_limit()
    long = '"' + "a, b; c " * limit + '"'
    path = text("\n".join(delimiter.join(row) for row in (["x", "note", "y"], ["1", long, "2"], ["3", long, "4"])))
    assert refused(path, "not a number|leave out").endswith("--skip-columns note")
    np.testing.assert_array_equal(tables.read(path, skip_columns=["note"]).X, [[1, 2], [3, 4]])
    assert csv.field_size_limit() == limit


def test_other_kinds_of_file(text, tmp_path):
    refused(text(b"PK\x03\x04" * 20, "x.xlsx"), "is not a readable spreadsheet: ")
    for name in ("x.xls", "x.feather", "x.pkl", "x.kpca"):
        refused(text(b"PK\x03\x04" * 20, name), "can be read")
    refused(tmp_path, "is a folder")


# ---- columns ---------------------------------------------------------------------------------------------------------


# ---- arrays ----------------------------------------------------------------------------------------------------------


def test_npy_is_mapped_and_not_copied(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    for options, expected in (
        ({}, X),
        ({"columns": ["2-3"]}, X[:, 1:]),
        ({"skip_columns": ["3"]}, X[:, :2]),
    ):
        table = tables.read(tmp_path / "x.npy", **options)
        assert isinstance(table.X, np.memmap) and not table.X.flags.writeable
        np.testing.assert_array_equal(table.X, expected)
    table = tables.read(tmp_path / "x.npy", columns=["3", "1"], label_column="2")
    assert isinstance(table.X, Source)  # scattered columns are not loaded
    np.testing.assert_array_equal(table.X[:], X[:, [2, 0]])
    np.testing.assert_array_equal(table.labels, X[:, 1])
    table = tables.read(tmp_path / "x.npy", id_column="1")
    assert table.X[:].tolist() == X[:, 1:].tolist() and table.identifiers.tolist() == [0.0, 3.0, 6.0, 9.0]
    scorefiles.write_scores(tmp_path / "s.csv", X[:, 1:].astype(np.float32) / 10, False, ("a,b", table.identifiers))
    assert (tmp_path / "s.csv").read_text().startswith('"a,b",PC1,PC2\n0,0.1,0.2\n3,0.4,0.5\n')


def test_npy_faults(tmp_path):
    for array, match in (
        (np.zeros(5), r"shape \(5,\); rows and columns are needed"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), "is empty"),
        (np.zeros((3, 0)), "is empty"),
        (np.zeros((2, 2), dtype=complex), "real numbers are needed"),
        (np.array([["a"]]), "real numbers are needed"),
        (np.zeros((2, 2), dtype="M8[s]"), "real numbers are needed"),
    ):
        np.save(tmp_path / "x.npy", array)
        refused(tmp_path / "x.npy", match)
    np.save(tmp_path / "x.npy", np.zeros((100, 3)))
    whole = (tmp_path / "x.npy").read_bytes()
    for length in (7, 30, 128, 1000):
        (tmp_path / "x.npy").write_bytes(whole[:length])
        refused(tmp_path / "x.npy", "cannot be read|not a .npy file")
    for shape in ("(10**400, 2)", "(3, 2", "(1e5, 2)", "(-1, 2)", "('a', 2)"):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117).encode() + b"\n"
        (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48))
        refused(tmp_path / "x.npy", "x.npy")


def test_npy_never_unpickles(tmp_path, text):
    np.save(tmp_path / "x.npy", np.array([[None, 1]], dtype=object), allow_pickle=True)
    refused(tmp_path / "x.npy", "cannot be read")
    np.savez(tmp_path / "x.npz", X=np.array([[None, 1]], dtype=object))
    refused(tmp_path / "x.npz", "holds no array of real numbers")
    refused(tmp_path / "x.npz", "no array of real numbers", var="X")
    refused(text(b"\x80\x04K\x01.", "p.npy"), "is not a .npy file")


def test_npz(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array([3, 1, 2])
    path = tmp_path / "x.npz"
    np.savez(path, X=X, y=y, names=np.array(["a", "b"]))
    np.testing.assert_array_equal(tables.read(path).X, X)
    table = tables.read(path, label_column="y", columns=["2"])
    np.testing.assert_array_equal(table.labels, y)
    np.testing.assert_array_equal(table.X, X[:, 1:])
    refused(path, r"'y' has shape|the array has shape \(3,\)", var="y")
    refused(path, r"no array of real numbers called 'Z'; it has X \(3 x 2\), y \(3\)", var="Z")
    refused(path, "no array of real numbers called 'names'", var="names")
    np.savez_compressed(path, X=X, X_test=X[:1], y=y)
    refused(path, r"several tables; choose one with --var: X \(3 x 2\), X_test \(1 x 2\)$")
    np.testing.assert_array_equal(tables.read(path, var="X_test").X, X[:1])
    refused(path, "'y' has 3 entries for 1 rows of 'X_test'", var="X_test", label_column="y")
    np.savez(path, y=y)
    refused(path, r"no table of rows and columns; it has y \(3\)")
    np.savez(path)
    refused(path, "holds no array of real numbers")


def npy_header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({"X.npy": (3, 2), "X": (2, 2)}, "several members called 'X'"),
        ({"X.npy": (3_000_000_000, 1000)}, r"X.npy has \d+ bytes, too few for its shape"),
        ({"X.npy": (5, 3)}, r"X.npy has \d+ bytes, too few for its shape"),
    ],
)
def test_members_of_an_npz_that_are_not_what_they_seem(tmp_path, members, match):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name, shape in members.items():
            archive.writestr(name, npy_header(shape) + bytes(80))
    refused(tmp_path / "x.npz", match)


def test_mat(in_this_process, tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 3))
    path = tmp_path / "x.mat"
    for options in ({"format": "4"}, {"format": "5", "do_compression": True}, {"format": "5"}):
        scipy.io.savemat(path, {"X": X, "y": np.arange(5.0), "word": "hello"}, **options)
        table = tables.read(path, label_column="y")
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.labels, np.arange(5))
    np.testing.assert_array_equal(tables.read(path, var="X").X, X)
    refused(path, "called 'Z'; it has X", var="Z")
    refused(path, "called 'word'", var="word")
    S = sp.random(30, 8, density=0.3, random_state=0, format="csc")
    scipy.io.savemat(path, {"S": S, "i": np.arange(12, dtype=np.int16).reshape(3, 4), "b": np.eye(3, dtype=bool)})
    refused(path, "several tables")
    X = tables.read(path, var="S", columns=["3", "1"]).X
    assert sp.issparse(X) and X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), S.toarray()[:, [2, 0]])
    np.testing.assert_array_equal(tables.read(path, var="i").X, np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(tables.read(path, var="b").X, np.eye(3))
    scipy.io.savemat(path, {"c": {"field": "word"}, "z": np.array([[1, "a"]], dtype=object)})
    refused(path, "holds no array of real numbers")
    for row in (-1, 30, 10**8):  # out of range
        S.indices[5] = row
        scipy.io.savemat(path, {"S": S})
        refused(path, r"'S' that cannot be read: (indices|row index values) must be")


def test_what_only_calls_itself_a_mat_of_version_73(tmp_path):
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\x00\x02IM"
    path = tmp_path / "x.mat"
    path.write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(600))
    refused(path, "is not a readable HDF5 file|reading it needs h5py")
    path.write_bytes(header.ljust(600, b"\0"))
    refused(path, r"no HDF5 file behind that; .*save\('name.mat', 'X', '-v7.3'\)")


# ---- scores, memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npy"])
def test_scores_come_back_exactly(tmp_path, dtype, suffix):
    scores = np.random.default_rng(0).standard_normal((9001, 3)).astype(dtype) * np.array([1e-30, 1, 1e30], dtype)
    path = tmp_path / ("s" + suffix)
    scorefiles.write_scores(path, scores, False)
    with pytest.raises(FileExistsError):
        scorefiles.write_scores(path, scores, False)
    scorefiles.write_scores(path, scores, True)
    table = tables.read(path)
    assert table.X.astype(dtype).tobytes() == scores.tobytes()
    assert suffix == ".npy" or table.names == ["PC1", "PC2", "PC3"]
    assert os.listdir(tmp_path) == [path.name]


def test_memory_of_a_csv_is_bounded_by_its_table(tmp_path, reader):
    n, d = 100_000, 10
    line = ",".join(["0.12345678901234567"] * d) + "\n"
    (tmp_path / "x.csv").write_text("a,b,c,d,e,f,g,h,i,j\n" + line * n)
    if importlib.util.find_spec("pandas"):
        importlib.import_module("pandas")  # what its first import takes is not counted
    assert traced(lambda: tables.read(tmp_path / "x.csv")) < 3 * 8 * n * d


def test_a_damaged_mat_file_that_kills_scipys_reader(tmp_path):
    """A sparse matrix whose column starts point far outside: 280 bytes that end the process which reads them."""
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"X": sp.csc_matrix(np.eye(3))})
    whole = bytearray(path.read_bytes())
    starts = np.array([0, 1, 2, 3], dtype="<i4").tobytes()
    at = whole.index(starts)
    whole[at : at + 16] = np.array([0, 1 << 30, -(1 << 30), 1 << 30], dtype="<i4").tobytes()
    path.write_bytes(whole)
    refused(path, "x.mat")


def test_a_reader_that_dies_or_does_not_end(tmp_path, monkeypatch):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"X": np.eye(3)})
    program = tmp_path / "reader.py"
    monkeypatch.setattr(archives.readmat, "__file__", str(program))
    program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    refused(path, "the file is damaged")
    program.write_text("import time; time.sleep(60)")
    run = subprocess.run
    monkeypatch.setattr(archives.subprocess, "run", lambda *args, timeout, **rest: run(*args, timeout=0.1, **rest))
    refused(path, "took more than")


def test_a_sparse_matrix_of_rows_that_are_nearly_all_empty_is_refused_at_once(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"P": sp.random(20, 20, 0.2, format="csc", random_state=0)})
    raw = bytearray(path.read_bytes())
    at = raw.find(np.array([20, 20], "<i4").tobytes())
    raw[at : at + 4] = np.array([30_000_000], "<i4").tobytes()
    path.write_bytes(raw)
    refused(path, "x.mat has a variable 'P' that cannot be read: it calls itself 30000000 x 20 and holds 80 values")


@pytest.mark.parametrize("shape", ["(4611686018427387904, 8)", "(9223372036854775807, 2)"])
def test_a_shape_that_overflows_is_an_error_alone(tmp_path, shape):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
    refused(path, "x.npy cannot be read")  # warnings are errors here


def test_long_doubles_beyond_float64_are_refused_without_a_warning(tmp_path):
    X = np.full((4, 2), np.finfo(np.longdouble).max)
    with np.errstate(over="ignore"):
        if np.isfinite(X.astype(float)).all():
            pytest.skip("long double is float64 here")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="beyond float64's 1.8e308; rescale it"):
        tables.faults(tables.read(tmp_path / "x.npy"))
