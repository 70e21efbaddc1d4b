"""Bodies are cut within bounds: a hostile one costs no more memory than a large one that is good.

Method: windows of some characters, at every place of random bodies; memory as Python counts it.
"""

import json
import random
import tracemalloc

import pytest

from headrace.errors import HeadraceError, RecordTooLarge, UsageError
from headrace.serve.ingest import cutting
from headrace.serve.ingest.cutting import MAX_RECORDS, cut_json, cut_lines
from headrace.serve.ingest.decoding import Body, Kind, decode

VALUES = ["", "é😀", '\\"{[', 1, -1.5e300, True, None, [], {}, [[], {"a": "]}"}], "\u2028 x" * 3]


def random_object(random: random.Random, most: int) -> str:
    """Return the text of an object with at most so many bytes."""
    while True:
        found = {f"k{n}": random.choice(VALUES) for n in range(random.randrange(4))}
        text = json.dumps(found, ensure_ascii=random.random() < 0.5)
        if len(text.encode()) <= most:
            return text


def outcome(body: bytes) -> object:
    try:
        return cut_json(body).texts
    except HeadraceError as error:
        return type(error), str(error)


def test_windows_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record fits; where a body is broken, the same place of it is told."""
    drawn = random.Random(1)
    for _ in range(300):
        texts = [random_object(drawn, 60) for _ in range(drawn.randrange(1, 9))]
        good = "[" + drawn.choice([",", " , ", ",\n"]).join(texts) + "]"
        at = drawn.randrange(len(good))
        bodies = [good, good[:at] + drawn.choice('x{]"') + good[at + 1 :], good[:at]]
        whole = [outcome(body.encode()) for body in bodies]
        assert whole[0] == [text.encode() for text in texts]
        with monkeypatch.context() as small:
            small.setattr(cutting, "MAX_RECORD_BYTES", 60)
            small.setattr(cutting, "_WINDOW_CHARACTERS", 120)
            assert outcome(good.encode()) == whole[0]
            for body, expected in zip(bodies, whole, strict=True):
                found = outcome(body.encode())
                # What is broken may be taken for a part of a record that is too large.
                is_large = isinstance(found, tuple) and found[0] is RecordTooLarge
                assert found == expected or is_large, body


def test_a_record_that_does_not_fit_a_window_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_RECORD_BYTES", 60)
    monkeypatch.setattr(cutting, "_WINDOW_CHARACTERS", 120)
    for value in ("x" * 200, [True] * 50, [-1.5] * 50, ["\u00e9😀"] * 50, [None] * 50, [[]] * 99):
        for before in range(60):
            large = json.dumps({"k" * before: value})
            with pytest.raises(RecordTooLarge, match=r"^record 2: (more than 60|\d+) bytes"):
                cut_json(f"[{{}},{large},{{}}]".encode())
            with pytest.raises(UsageError, match=r"^record 2: not a JSON object: \["):
                cut_json(f"[{{}},[{large}],{{}}]".encode())


MB = 1 << 20
NESTED = b'{"a":[' + b"[]," * (8 * MB // 3) + b"[]]}"


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (Kind.LINES, b"{}\n" * (8 * MB // 3), "2,796,202 lines, 50,000 is the most"),
        (Kind.LINES, b"\n" * (8 * MB), "8,388,608 lines, 50,000 is the most"),
        (Kind.LINES, b"{}\n" + NESTED, "line 2: 8388616 bytes"),
        (Kind.JSON, b"[" + b"{}," * (8 * MB // 3) + b"{}]", "more than 50,000 records"),
        (Kind.JSON, NESTED, "record 1: more than 1048576 bytes"),
    ],
    ids=["lines", "empty lines", "a large line", "an array", "a large object"],
)
def test_what_is_too_much_is_refused_before_it_is_read(kind: Kind, body: bytes, told: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RecordTooLarge, match=told):
            decode(Body(body, kind))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80 * MB


def test_as_many_records_as_may_are_taken() -> None:
    assert len(cut_lines(b"{}\n" * MAX_RECORDS).texts) == MAX_RECORDS
    assert len(cut_json(b"[" + b"{}," * (MAX_RECORDS - 1) + b"{}]").texts) == MAX_RECORDS
