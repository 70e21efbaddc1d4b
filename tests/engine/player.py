"""Play a transcript: a story of records, waits and crashes, with what must be there in between.

A file has `definitions`, perhaps `partitions`, and `stories`; a story has a title, perhaps
`options` that are put into the definitions, and steps. All of them happen on 2026-01-01, times are
written `12:00:10`; a time of another day is written in full. The steps:

- `append: {to: 0, ts: 12:00:10, ...}`: a record, to a partition of the only stream or to
  `stream/partition`; `arrival` if it is not the event time; `raw` instead of fields for broken text
- `turn`: read everything, to the end; `wait: 1 minute`: let time pass; `end of input`
- `crash: after_stage`: die there in the next turn, and start again; `restart`; `lose the store`
- `add partitions: 3`: the topics have so many from now on
- `rows: {view: [...]}`: exactly these rows, in any order, with `closed` if it is written
- `late: {view: [times]}`, `dead: {name: [offsets]}`, `duplicates: {stream: [offsets]}`
- `counters: {name: {late: 1, ...}}`: these among others
- `told: {topic: [...]}`: what a sink was told since the last such step, in any order; one with
  nothing but its key is a tombstone

Every `rows` step also asks the reference about the log as it is. A step that nobody knows is an
error.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml
from agreement import assert_agrees_with_the_reference

from headrace.log import Partition, Range
from headrace.model.graph import streams_of
from headrace.testing import Harness, harness

__all__ = ["Story", "play", "read_stories"]

DAY = "2026-01-01"


@dataclass(frozen=True)
class Story:
    """One story of a file."""

    file: str
    title: str
    definitions: str
    partitions: int
    steps: list[Any]

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def read_stories(folder: Path) -> list[Story]:
    """Return the stories of all files of a folder."""
    stories = []
    for path in sorted(folder.glob("*.yaml")):
        # Times stay as they are written: YAML would make numbers of them.
        found = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
        for story in found["stories"]:
            definitions = found["definitions"]
            for name, text in story.get("options", {}).items():
                assert name in definitions, f"{path.name}: nothing to replace by {name}"
                definitions = definitions.replace(name, text)
            unknown = set(story) - {"story", "options", "steps"}
            assert not unknown, f"{path.name}: {unknown}"
            partitions = int(found.get("partitions", 1))
            stories.append(
                Story(path.stem, story["story"], definitions, partitions, story["steps"])
            )
    return stories


def play(story: Story, *, gears: Sequence[str]) -> None:
    """Play a story, its `turn` steps in these gears by turns. AssertionError: it goes otherwise."""
    with harness(story.definitions, partitions=story.partitions) as h:
        player = _Player(h, cycle(gears))
        for number, step in enumerate(story.steps, 1):
            [(name, content)] = step.items() if isinstance(step, Mapping) else [(step, None)]
            method = getattr(player, f"do_{name.replace(' ', '_')}", None)
            assert method is not None, f"step {number}: nobody knows {name!r}"
            try:
                method() if content is None else method(content)
            except AssertionError as error:
                raise AssertionError(f"step {number}, {name}: {error}") from error


@dataclass
class _Player:
    harness: Harness
    gears: Iterator[str]
    told: dict[Partition, int] = field(default_factory=dict)  # how far sinks were looked at

    def do_append(self, record: dict[str, str]) -> None:
        record = dict(record)
        to = record.pop("to", "0")
        stream, _, partition = to.rpartition("/")
        stream = stream or self.harness.project.streams[0].name
        arrival = record.pop("arrival", None)
        raw = record.pop("raw", None)
        value = {name: _sent(text) for name, text in record.items()} if raw is None else raw
        self.harness.append(
            stream,
            [value],
            partition=int(partition),
            arrival=None if arrival is None else _moment(arrival),
        )

    def do_turn(self) -> None:
        gear = next(self.gears)
        while self.harness.turn(gear=gear) or self.harness.crashed:
            if self.harness.crashed:
                self.harness.restart()

    def do_wait(self, text: str) -> None:
        self.harness.wall(text)

    def do_end_of_input(self) -> None:
        self.harness.close_time()

    def do_crash(self, point: str) -> None:
        self.harness.crash(point)

    def do_restart(self) -> None:
        self.harness.restart()

    def do_lose_the_store(self) -> None:
        self.harness.lose_store()
        self.harness.restart()

    def do_add_partitions(self, count: str) -> None:
        for stream in self.harness.project.streams:
            self.harness.log.change_topic(stream.topic, partitions=int(count))

    def do_rows(self, expected: dict[str, Any]) -> None:
        for view, rows in expected.items():
            wanted = rows or []
            names = {name for row in wanted for name in row}
            found = [
                {name.lstrip("_"): _written(value) for name, value in row.items()}
                for row in self.harness.rows(view, meta=True)
            ]
            for row in found:
                for extra in {"events", "closed"} - names:
                    row.pop(extra)
            _same(found, wanted)
        assert_agrees_with_the_reference(self.harness)

    def do_late(self, expected: dict[str, Any]) -> None:
        for view, times in expected.items():
            [stream] = streams_of(self.harness.project.view(view).query)
            column = self.harness.project.stream(stream).event_time
            assert column is not None
            found = sorted(_written(row[column]) for row in self.harness.late(view))
            assert found == sorted(times or []), f"late for {view}: {found}"

    def do_dead(self, expected: dict[str, Any]) -> None:
        for name, offsets in expected.items():
            found = sorted(str(row["offset"]) for row in self.harness.dead(name))
            assert found == sorted(offsets or []), f"dead for {name}: {found}"

    def do_duplicates(self, expected: dict[str, Any]) -> None:
        for name, offsets in expected.items():
            found = sorted(str(row["offset"]) for row in self.harness.duplicates(name))
            assert found == sorted(offsets or []), f"duplicates of {name}: {found}"

    def do_counters(self, expected: dict[str, dict[str, str]]) -> None:
        for name, counters in expected.items():
            found = self.harness.counters(name)
            assert {each: str(found[each]) for each in counters} == counters

    def do_told(self, expected: dict[str, Any]) -> None:
        for topic, records in expected.items():
            found = []
            known = {each.name for each in self.harness.log.topics()}
            for place, extent in self.harness.log.extents(topic).items() if topic in known else ():
                start = self.told.get(place, extent.first_offset)
                self.told[place] = extent.end_offset
                for batch in self.harness.log.read(Range(place, start, extent.end_offset)):
                    found += [_told(record) for record in batch.to_pylist()]
            _same(found, records or [])


def _told(record: dict[str, Any]) -> dict[str, str]:
    told = {f"key {name}": _short(value) for name, value in json.loads(record["key"]).items()}
    for name, value in json.loads(record["value"] or b"{}").items():
        told[name.lstrip("_")] = _short(value)
    told.pop("events", None)
    return told


def _same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    def order(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows)

    assert order(found) == order(wanted), "\n".join(
        ["found", *order(found), "wanted", *order(wanted)]
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text if "T" in text else f"{DAY}T{text}").replace(tzinfo=UTC)


def _sent(text: str) -> object:
    if text == "null":
        return None
    if ":" in text:
        return _moment(text)
    return text


def _written(value: object) -> object:
    """Return a value of a row as the files write it."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
        whole = value.isoformat().removesuffix("+00:00")
        return whole.removeprefix(f"{DAY}T")
    if isinstance(value, list):
        return [_written(each) for each in value]
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items()}
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float | Decimal | date | timedelta):
        return str(value)
    return value


def _short(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(_written(value))
    text = str(value)
    return text.removeprefix(f"{DAY}T").removesuffix("Z") if ":" in text else text
