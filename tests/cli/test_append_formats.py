"""What a file may be: lines, CSV, gzip, with a byte order mark, with any line ends; or refused."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.commands import Answer, Run
from headrace.cli.log.csv_rows import read_rows
from headrace.errors import UsageError
from headrace.log import EmbeddedLog
from headrace.testing.log.suite import rows

SQL = """
CREATE STREAM sales (
  invoice STRING FROM 'InvoiceNo', quantity INT FROM 'Quantity',
  ts TIMESTAMP NOT NULL FROM 'InvoiceDate', WATERMARK FOR ts AS ts - INTERVAL 1 MINUTE
) WITH (key = 'invoice');
CREATE MATERIALIZED VIEW sold AS SELECT sum(quantity) AS n FROM sales;
"""
HEADER = b"InvoiceNo,Quantity,InvoiceDate,Description\n"
ROWS = b'536365,6,2010-12-01 08:26:00,"WHITE, ""HANGING"" HEART"\nC1,-2,2010-12-01 08:27:00,\n'
RECORDS = [
    {
        "InvoiceNo": "536365",
        "Quantity": "6",
        "InvoiceDate": "2010-12-01 08:26:00",
        "Description": 'WHITE, "HANGING" HEART',
    },
    {
        "InvoiceNo": "C1",
        "Quantity": "-2",
        "InvoiceDate": "2010-12-01 08:27:00",
        "Description": None,
    },
]
MARK = b"\xef\xbb\xbf"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "sales.sql").write_text(SQL)
    return tmp_path


def append(headrace: Run, shop: Path, name: str, data: bytes, *options: str) -> Answer:
    (shop / name).write_bytes(data)
    return headrace("append", "sales", shop / name, "-p", shop, *options)


def stored(shop: Path) -> dict[bytes | None, bytes]:
    log = EmbeddedLog(shop / ".headrace" / "log")
    found = [row for place in log.extents("sales") for row in rows(log, place)]
    log.close()
    by_key = {row["key"]: row["value"] for row in found}
    assert len(by_key) == len(found)
    return by_key


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("mark", [b"", MARK])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("delimiter", [b",", b";", b"\t"])
def test_a_csv_with_a_header_is_appended_as_json(
    shop: Path, headrace: Run, compressed: bool, mark: bytes, end: bytes, delimiter: bytes
) -> None:
    text = (HEADER + ROWS).replace(b", ", b"~ ").replace(b",", delimiter).replace(b"~ ", b", ")
    data = mark + text.replace(b"\n", end)
    name = "sales.csv.gz" if compressed else "sales.csv"
    answer = append(headrace, shop, name, gzip.compress(data) if compressed else data)
    assert answer.code == 0, answer.err
    found = stored(shop)
    assert [json.loads(found[key]) for key in (b"536365", b"C1")] == RECORDS


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("compressed", [False, True])
def test_lines_may_have_a_byte_order_mark_and_any_ends_and_be_compressed(
    shop: Path, headrace: Run, compressed: bool, end: bytes
) -> None:
    lines = [b'{"InvoiceNo": "1"}', b'{"InvoiceNo": "2"}']
    data = MARK + end.join(lines) + end + end
    if compressed:  # two members, as of two files joined
        data = gzip.compress(data[:20]) + gzip.compress(data[20:])
    answer = append(headrace, shop, "sales.jsonl", data)
    assert "left out 1 empty line\n" in answer.err
    assert stored(shop) == {b"1": lines[0], b"2": lines[1]}


def test_what_a_pipe_brings_is_looked_at_too(shop: Path) -> None:
    for data, options in [(gzip.compress(b'{"InvoiceNo": "1"}'), []),
                          (HEADER + ROWS, ["--format", "csv"])]:  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli.main", "append", "sales", "-p", shop, *options],
            input=data,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
    assert set(stored(shop)) == {b"1", b"536365", b"C1"}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.jsonl", HEADER + ROWS, "this looks like the header of a CSV file"),
        ("a.csv", ROWS, "the header has none of the fields that streams of the topic read"),
        ("a.csv", b"InvoiceNo,Quantity,InvoiceNo\n1,2,3\n", "names 'InvoiceNo' twice"),
        ("a.csv", b"InvoiceNo,,Quantity\n1,2,3\n", "column 2 of the header has no name"),
        ("a.csv", HEADER + ROWS + b"1,2,3\n", "row 3 has 3 cells, and the header has 4: '1,2,3'"),
        ("a.csv", HEADER + b"1,2,3,\xa3 5\n", "row 1 is not UTF-8"),
        ("a.csv", b"InvoiceNo,\xa3\n1,2\n", "the header is not UTF-8"),
        ("a.csv", b"", "there is no header line"),
        ("a.txt", "{}\n".encode("utf-16"), "this is text in UTF-16"),
        ("a.bin", b"\x28\xb5\x2f\xfd123456", "zstd -dc"),
        ("a.bin", b"BZh91AY", "bzip2 -dc"),
        ("a.bin", b"\xfd7zXZ\x00\x00", "xz -dc"),
        ("a.bin", b"PK\x03\x04....", "a zip archive"),
        ("a.bin", b"PAR1....", "a Parquet file"),
        ("a.tar", b"x" * 257 + b"ustar" + b"\0" * 250, "this is a tar archive"),
        (
            "a.tgz",
            gzip.compress(b"x" * 257 + b"ustar" + b"\0" * 250, mtime=0),
            "this is a tar archive",
        ),
        ("a.gz", gzip.compress(b"{}\n" * 9, mtime=0)[:-9], "damaged or cut off"),
        ("a.gz", b"\x1f\x8b\x08\x00garbage garbage", "damaged or cut off"),
    ],
)
def test_what_is_no_text_is_refused_with_what_to_do(
    shop: Path, headrace: Run, name: str, data: bytes, told: str
) -> None:
    answer = append(headrace, shop, name, data)
    assert answer.code == 2
    assert told in answer.err
    assert stored(shop) == {}


@pytest.mark.parametrize("options", [("--key-field", "InvoiceNo"), ("--key", "k"), ("--no-key",)])
def test_a_csv_is_looked_at_whatever_the_keys_are(
    shop: Path, headrace: Run, options: tuple[str, ...]
) -> None:
    refused = append(headrace, shop, "a.jsonl", HEADER + ROWS, *options)
    assert (refused.code, "this looks like the header of a CSV file" in refused.err) == (2, True)
    refused = append(headrace, shop, "a.csv", ROWS, *options)
    assert (refused.code, "the header has none of the fields" in refused.err) == (2, True)
    assert stored(shop) == {}


def test_the_format_can_be_said(shop: Path, headrace: Run) -> None:
    assert append(headrace, shop, "a.txt", HEADER + ROWS, "--format", "csv").code == 0
    assert set(stored(shop)) == {b"536365", b"C1"}
    raw = append(headrace, shop, "b.csv", HEADER + ROWS, "--format", "lines", "--json")
    assert raw.rows[0]["without_key"] == 3
    assert append(headrace, shop, "a.txt", b"", "--format", "xml").code == 2


def test_a_csv_that_breaks_in_the_middle_goes_on_when_it_is_mended(
    shop: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.cli.log import csv_rows

    monkeypatch.setattr(csv_rows, "CHUNK_BYTES", 2_000)
    many = b"".join(b"%d,1,2010-12-01 08:26:00,x\n" % n for n in range(300))
    refused = append(headrace, shop, "a.csv", HEADER + many + b"broken\n")
    assert refused.code == 2
    assert "row 301 has 1 cell, and the header has 4: 'broken'" in refused.err
    part = len(stored(shop))
    assert 0 < part < 300
    assert f"Rows 1 to {part} of {shop / 'a.csv'} are stored, no other is." in refused.err
    assert append(headrace, shop, "a.csv", HEADER + many, "--resume").code == 0
    assert len(stored(shop)) == 300


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
PIECES = st.sampled_from(['"', "\\", "\n", "\r\n", ",", "\x01", "\x1f", "é", "'", " "])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(CELLS | PIECES, CELLS | PIECES), max_size=8))
def test_every_cell_comes_out_as_it_was_written(table: list[tuple[str, str]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("a", 'b "c"'), *table])
    data = text.getvalue().encode()
    found = [
        json.loads(value)
        for batch in read_rows(io.BytesIO(data), "x.csv", data.partition(b"\n")[0])
        for value in batch.values.to_pylist()
    ]
    assert found == [{"a": first, 'b "c"': second} for first, second in table]


def test_a_row_over_the_limit_is_named() -> None:
    data = b"a,b\n1,2\n3," + b"x" * (1 << 20) + b"\n"
    with pytest.raises(Exception, match=r"x\.csv, row 2: this row as JSON is over"):
        list(read_rows(io.BytesIO(data), "x.csv", b"a,b"))
    with pytest.raises(UsageError, match="cannot be read from row 1 on"):
        list(read_rows(io.BytesIO(b"a,b\n1," + b"x" * (20 << 20) + b"\n"), "x.csv", b"a,b"))
