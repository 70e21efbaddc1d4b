"""Records go into the log and come out of it as they are: append, tail, topics."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.commands import Run
from headrace.cli.log.lines import read_lines
from headrace.errors import RecordTooLarge
from headrace.log import MAX_RECORD_BYTES


class Drip(io.RawIOBase):
    """Input that arrives in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read1(self, _: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def fileno(self) -> int:
        raise io.UnsupportedOperation


@given(
    st.lists(st.binary(max_size=8) | st.sampled_from([b"\n", b"a\n", b"\r\n", b"\r"]), max_size=12)
)
def test_a_record_is_a_line_however_the_input_arrives(pieces: list[bytes]) -> None:
    batches = list(read_lines(Drip(pieces), "drip"))
    found = [value for batch in batches for value in batch.values.to_pylist()]
    lines = b"".join(pieces).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    assert found == [line for line in lines if line]
    assert sum(batch.empty for batch in batches) == lines.count(b"")
    numbers = [number for batch in batches for number in batch.numbers.tolist()]
    assert numbers == [number for number, line in enumerate(lines, 1) if line]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_over_the_limit_is_named_and_what_came_before_it_is_not_lost(end: bytes) -> None:
    data = b"a\n\nb\n" + b"x" * (MAX_RECORD_BYTES + 1) + end
    batches = read_lines(Drip([data[:3], data[3:]]), "drip")
    found: list[bytes] = []
    with pytest.raises(RecordTooLarge, match="drip:4: this line is"):
        found.extend(value for batch in batches for value in batch.values.to_pylist())
    assert found == [b"a", b"b"]


def test_what_is_appended_is_shown_by_tail_and_counted_by_topics(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    lines = [b'{"card": "a", "n": 1}', b"no json \xff\x1b[31m", b'{"card": "a", "n": 2}']
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    answer = headrace("append", "payments", tmp_path / "lines", "--key-field", "card", "--json",
                      "-p", project)  # fmt: skip
    assert answer.code == 0
    assert answer.rows[0]["records"] == 3

    shown = headrace("tail", "payments", "--json", "-p", project).rows
    by_value = {str(row["value"]): row for row in shown}
    assert by_value['{"card": "a", "n": 1}']["key"] == "a"
    places = [by_value[f'{{"card": "a", "n": {n}}}'] for n in (1, 2)]
    assert places[0]["partition"] == places[1]["partition"]
    assert places[0]["offset"] < places[1]["offset"]
    assert [row["key"] for row in shown if isinstance(row["value"], dict)] == [None]

    text = headrace("tail", "payments", "-p", project).out
    assert "\\xff\\x1b[31m" in text  # a terminal is not told to turn red
    (topic,) = headrace("topics", "--json", "-p", project).rows
    assert (topic["topic"], topic["partitions"], topic["records"]) == ("payments", 4, 3)
    assert topic["bytes"] > 0


def test_records_without_keys_go_where_they_are_told(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_bytes(b"1\n\n2\n")
    arguments = ("append", "payments", tmp_path / "lines", "-p", project)
    assert "left out 1 empty line\n" in headrace(*arguments, "--partition", 2).err
    headrace(*arguments, "--partition", 2, "--key", "k")
    shown = headrace("tail", "payments", "--json", "--from", 1, "-n", 2, "-p", project).rows
    assert [(row["offset"], row["key"], row["value"]) for row in shown] == [
        (1, None, "2"),
        (2, "k", "1"),
    ]
    answer = headrace(*arguments, "--partition", 9)
    assert answer.code == 2
    assert "payments/9: no such partition" in answer.err


def test_a_topic_that_no_stream_reads_is_made_only_on_demand(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_bytes(b"1\n")
    arguments = ("append", "clicks", tmp_path / "lines", "-p", project)
    answer = headrace(*arguments)
    assert answer.code == 2
    assert "no stream reads it (those of the project read payments)" in answer.err
    assert headrace(*arguments, "--create", "--partitions", 2).code == 0
    (topic,) = headrace("topics", "--json", "-p", project).rows
    assert (topic["topic"], topic["partitions"]) == ("clicks", 2)
    assert "there are: clicks" in headrace("tail", "nope", "-p", project).err


def test_a_file_that_is_not_there_is_a_wrong_call(project: Path, headrace: Run) -> None:
    answer = headrace("append", "payments", "no/such/file", "-p", project)
    assert answer.code == 2
    assert "no/such/file: cannot be read" in answer.err
