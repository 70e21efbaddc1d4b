"""The state of a queue on Kafka: what its entries make of it. No broker is needed.

Method: random entries of several consumers, wanted or not; beside the state, a plain account of
every offset. A snapshot is taken and loaded again somewhere on the way, which must not show.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import DrawFn, composite, integers, lists, sampled_from, tuples

from headrace.consume.kafka.queue_entries import book_name
from headrace.consume.kafka.queue_state import Entry, QueueState
from headrace.consume.queue_records import DeadRow, Held
from headrace.consume.queues import QueueSettings

LOCK_MS = 100
SETTINGS = QueueSettings(max_deliveries=2, lock_ms=LOCK_MS, dead_letters="d")._asdict()
CONSUMERS = ("a", "b", "c")
END = 12


def entry(offset: int, time_ms: int, by: str, do: str, **content: Any) -> Entry:
    written = json.dumps({"v": 1, "by": by, "do": do, **content})
    return Entry(offset, time_ms, json.loads(written))


@composite
def histories(draw: DrawFn) -> list[tuple[str, str, int, int]]:
    """Return (who, what, how many, how much later) many times."""
    steps = tuples(
        sampled_from(CONSUMERS),
        sampled_from(["take", "finish", "release", "reject", "leave", "enter", "buried", "show"]),
        integers(0, 5),
        sampled_from([0, 1, LOCK_MS // 2, LOCK_MS]),
    )
    return draw(lists(steps, max_size=40))


class Account:
    """Who holds what, by what came of the entries; and what became of each offset."""

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], tuple[str, int, int]] = {}  # by, deliveries, until
        self.done: set[tuple[int, int]] = set()
        self.dead: dict[tuple[int, int], DeadRow] = {}

    def holds(self, by: str, now_ms: int) -> list[Held]:
        return [
            Held(*at, deliveries)
            for at, (who, deliveries, until) in sorted(self.held.items())
            if who == by and until > now_ms
        ]


@settings(deadline=None, max_examples=200)
@given(history=histories(), cut=integers(0, 40))
def test_a_record_is_held_by_one_and_ends_once_and_a_snapshot_does_not_show(
    history: list[tuple[str, str, int, int]], cut: int
) -> None:
    state, account = QueueState(), Account()
    starts = [[0, 0, 7], [1, 3, 0]]
    state.apply(entry(0, 0, "a", "enter", settings=SETTINGS, starts=starts))
    now_ms, known_sequences = 0, {0: 7, 1: 0}
    for step, (by, do, count, later_ms) in enumerate(history):
        if step == cut:
            state = QueueState.from_json(json.loads(json.dumps(state.to_json())))
        now_ms += later_ms
        content: dict[str, Any] = {}
        wanted: list[Held] = []
        if do == "take":
            content = {"max": count, "ends": [[0, END], [1, END]], "gone": []}
        elif do == "enter":
            content = {"settings": SETTINGS, "starts": [[0, 5, 5]]}  # too late to matter
        elif do in ("finish", "release", "reject"):
            # What it holds, and what it does not, or no longer.
            wanted = [*account.holds(by, now_ms)[:count], Held(0, count, 9)]
            content = {"records": wanted}
        elif do == "buried":
            if not state.dying:
                continue
            batch = state.dying[0].batch
            content = {"batch": [batch.number, batch.sequence]}
        outcome = state.apply(entry(step + 1, now_ms, by, do, **content))
        if do in ("finish", "release", "reject"):
            assert list(outcome.late) == wanted[-1:]
            for number, offset, _ in wanted[:-1]:
                del account.held[number, offset]
                if do == "finish":
                    account.done.add((number, offset))
        if do == "leave":
            for number, offset, _ in account.holds(by, now_ms):
                del account.held[number, offset]
        new = [Held(p.number, at, 1) for p, start, end in outcome.new for at in range(start, end)]
        for number, offset, deliveries in [*outcome.again, *new]:
            at = (number, offset)
            assert at not in account.done
            assert at not in account.dead
            *_, until = account.held.get(at, (None, 0, 0))
            assert until <= now_ms, "handed to two at a time"
            assert deliveries <= 2
            account.held[at] = (by, deliveries, now_ms + LOCK_MS)
        assert len(outcome.again) + len(new) <= count or do != "take"
        for dying in state.dying:
            number, sequence, rows = dying.batch
            for row in rows:
                assert account.dead.setdefault((number, row.offset), row) == row
                assert (number, row.offset) not in account.done
            known_sequences[number] = max(known_sequences[number], sequence)
    # Every offset that was handed out is done, dead, or still open; the sequences have no gap.
    stored = state.to_json()
    handed_out = {(n, at) for n, end in state.cursors.items() for at in range(3 * n, end)}
    open_ones = {(number, offset) for number, offset, *_ in stored["open"]}
    assert account.done | account.dead.keys() | open_ones == handed_out
    assert not account.done & open_ones
    assert not account.dead.keys() & open_ones
    assert state.sequences == known_sequences


def test_entries_of_version_1_mean_what_they_meant() -> None:
    state = QueueState()
    for offset, (time_ms, written) in enumerate(
        [
            (10, '{"v":1,"by":"a","do":"enter","settings":{"max_deliveries":2,"lock_ms":100,'
                 '"dead_letters":"d","start":"earliest"},"starts":[[0,5,0]]}'),
            (20, '{"v":1,"by":"a","do":"take","max":3,"ends":[[0,9]],"gone":[]}'),
            (30, '{"v":1,"by":"a","do":"finish","records":[[0,5,1]]}'),
            (40, '{"v":1,"by":"a","do":"release","records":[[0,6,1]]}'),
            (50, '{"v":1,"by":"a","do":"reject","records":[[0,7,1]]}'),
            (60, '{"v":1,"by":"b","do":"take","max":1,"ends":[[0,9]],"gone":[]}'),
            (70, '{"v":1,"by":"b","do":"show"}'),
            (160, '{"v":1,"by":"b","do":"leave"}'),
            (170, '{"v":1,"by":"a","do":"buried","batch":[0,1]}'),
            (180, '{"v":1,"by":"a","do":"snapshot","at":8,"state":{}}'),
        ]
    ):  # fmt: skip
        state.apply(Entry(offset, time_ms, json.loads(written)))
    assert json.loads(json.dumps(state.to_json())) == {
        "settings": {
            "max_deliveries": 2,
            "lock_ms": 100,
            "dead_letters": "d",
            "start": "earliest",
        },
        "now_ms": 170,
        "cursors": [[0, 8, 2]],
        "consumers": {"a": 170},
        "dying": [[[0, 2, [[6, 2, "delivered 2 times"]]], "b", 160]],
        "open": [],
    }


def test_books_have_names_that_differ_and_fit() -> None:
    names = {
        book_name("c", "a.b", "1"),
        book_name("b.c", "a", "1"),
        book_name("c", "a_b", "1"),
        book_name("c", "a.b", "2"),
        book_name("x" * 249, "y" * 249, "1"),
        book_name("x" * 248, "y" * 249, "1"),
    }
    assert len({name.replace("_", ".") for name in names}) == 6
    assert max(map(len, names)) + 100 <= 249
