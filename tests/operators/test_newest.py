"""The newest change of every key: what the operator gives merges to what each change says.

Method: random changes of few keys, of every type that a key may have, in and out of the order of
their offsets, with values that were not sent; the expected states are worked out in plain Python.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.newest import Newest, fold_newest

PLACE = pa.struct([("time_us", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64())])
VALUE = pa.struct([("gone", pa.bool_()), ("c0", pa.int64())])
KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a", "b", "é"]),
    (pa.int32(), [1, -2, 3]),
    (pa.bool_(), [True, False]),
    (pa.binary(), [b"", b"\x00", b"x"]),
    (pa.date32(), [date(2026, 1, 1), date(1969, 1, 1)]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("0.00")]),
    (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)]),
]
NUMBERS = st.integers(0, 5)
CHANGES = st.lists(
    st.tuples(
        NUMBERS, NUMBERS, st.booleans(), st.sampled_from([None, None, ["text"], []]), st.booleans()
    ),
    max_size=30,
)


def newest(key: pa.DataType, *, unsent: bool) -> Newest:
    fields = [("k0", key), ("_events", pa.int64())]
    fields.append(("a0_0", pa.struct([("tiebreak", PLACE), ("value", VALUE)])))
    fields += [("a1_0", pa.int32()), ("a2_0", pa.int32())]
    if unsent:
        fields.append(("a3_0", pa.struct([("tiebreak", PLACE), ("value", pa.string())])))
    members = (("gone", "_deleted"), ("c0", "n"))
    apart = ("text",) if unsent else ()
    return Newest(pa.schema(fields), ("k",), members, apart, "_unsent" if unsent else None)


@pytest.mark.parametrize("number", range(len(KEYS)))
@pytest.mark.parametrize("unsent", [False, True])
@settings(max_examples=30, deadline=None)
@given(drawn=CHANGES, shuffled=st.booleans())
def test_the_rows_of_a_key_merge_to_its_newest_change(
    number: int, unsent: bool, drawn: list[Any], shuffled: bool
) -> None:
    type, values = KEYS[number]
    changes = [
        {"k": values[key % len(values)], "n": n, "_deleted": gone, "_unsent": names,
         "text": f"t{at}", "__partition": 3, "__offset": 10 * at}
        for at, (key, n, gone, names, _) in enumerate(drawn)
    ]  # fmt: skip
    given_ = sorted(changes, key=lambda each: hash(each["text"])) if shuffled else changes
    schema = pa.schema(
        [("k", type), ("n", pa.int64()), ("_deleted", pa.bool_()),
         ("_unsent", pa.list_(pa.string())), ("text", pa.string()),
         ("__partition", pa.int32()), ("__offset", pa.int64())]
    )  # fmt: skip
    found = fold_newest(
        newest(type, unsent=unsent), pa.Table.from_pylist(given_, schema=schema)
    ).to_pylist()
    for key in {repr(change["k"]): change["k"] for change in changes}.values():
        own = [change for change in changes if change["k"] == key]
        rows = [row for row in found if row["k0"] == key]
        assert sum(row["_events"] for row in rows) == len(own)
        top = max((row["a0_0"] for row in rows), key=lambda state: state["tiebreak"]["offset"])
        last = own[-1]
        place = {"time_us": 0, "partition": 3, "offset": last["__offset"]}
        assert top == {"tiebreak": place, "value": {"gone": last["_deleted"], "c0": last["n"]}}
        assert {row["a1_0"] for row in rows} == {row["a2_0"] for row in rows} == {3}
        if unsent:
            sent = [change for change in own if "text" not in (change["_unsent"] or ())]
            states = [row["a3_0"] for row in rows if row["a3_0"] is not None]
            told = max(states, key=lambda state: state["tiebreak"]["offset"], default=None)
            assert (told and told["value"]) == (sent[-1]["text"] if sent else None)
    assert len(found) >= len({repr(change["k"]) for change in changes})
