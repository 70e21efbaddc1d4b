"""Golden SQL: what definitions become, and what the wrong ones are answered.

Method: each file in golden/ holds cases. A case opens with `-- case:` and a sentence; its SQL
follows; then what it becomes, in comments: `-- error: file:line:column: message`, one per problem,
or the dump of what it defines. All cases see the streams of streams.sql, which is parsed with each.
`HEADRACE_GOLDEN=write pytest tests/sql/test_golden.py` writes the answers anew, to be reviewed.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.errors import DefinitionError
from headrace.model import Project as Definitions
from headrace.model import Stream, View
from headrace.model.canonical import from_canonical, to_canonical
from headrace.model.nodes import (
    Aggregate,
    AssignWindows,
    Call,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Node,
    Project,
    Scan,
    Union,
    Window,
)
from headrace.model.scalars import Scalar
from headrace.sql import parse_project

GOLDEN = Path(__file__).parent / "golden"
STREAMS = (GOLDEN / "streams.sql").read_text()
FILES = sorted(path.name for path in GOLDEN.glob("*.sql") if path.name != "streams.sql")
ANSWER = re.compile(
    r"-- (error|stream|table|view|query|branch|union|from|where|generate|windows?|key|call|output"
    r"|having|sink|written): "
)


class Case(NamedTuple):
    title: str
    sql: str
    expected: list[str]


def read_cases(file: str) -> list[Case]:
    cases = []
    for part in (GOLDEN / file).read_text().split("-- case: ")[1:]:
        title, _, text = part.partition("\n")
        lines = text.rstrip().split("\n")
        expected = [line for line in lines if ANSWER.match(line)]
        sql = "\n".join(line for line in lines if not ANSWER.match(line)).rstrip()
        cases.append(Case(title, sql, expected))
    return cases


def dump_stream(stream: Stream) -> list[str]:
    columns = ", ".join(
        f"{each.name} {each.type.ddl}{'' if each.nullable else ' NOT NULL'}"
        + (f" at {list(each.path)}" if each.path else "")
        + (f" in {each.format}" if each.format else "")
        for each in stream.columns
    )
    columns += "".join(
        f", {each.name} {each.type or ''} as {show(each.scalar)} after {each.at}"
        for each in stream.computed
    )
    time = f", time {stream.event_time} - {stream.delay_us} us" if stream.event_time else ""
    rest = f", key {stream.key}, timestamps {stream.timestamp_format}"
    if stream.unique is not None:
        rest += f", unique {stream.unique} {stream.unique_within_us} us {stream.duplicates}"
    if stream.primary_key:
        keyed = f"key {', '.join(stream.primary_key)} from {stream.key_from}, {stream.format}"
        return [f"-- table: {stream.name} ({columns}) from {stream.topic}{time}, {keyed}"]
    return [f"-- stream: {stream.name} ({columns}) from {stream.topic}{time}{rest}"]


def dump_view(view: View) -> list[str]:
    late = "" if view.late == "topic" else f", late {view.late}"
    kept = "" if view.retention_us is None else f", kept {view.retention_us} us"
    told = f", emit {view.emit} {view.emit_every_us or ''}".rstrip()
    lateness = f"{view.allowed_lateness_us} us{late}{kept}{'' if view.emit == 'changes' else told}"
    if view.topic is not None:  # its query stands above
        return [f"-- written: {view.name} to {view.topic}, key {view.key}"]
    return [f"-- view: {view.name}, {lateness}", *dump_node(view.query)]


def dump_node(node: Node) -> list[str]:
    """Return a line for each part of a node, those of its input first."""
    match node:
        case Scan():
            return [f"-- from: {node.stream}"]
        case Changelog():
            return [f"-- from: changes of {node.stream}"]
        case Deduplicate():
            by = f"without duplicates by {node.by} within {node.within_us} us"
            return [f"-- from: {node.input.stream} {by}"]
        case Filter():
            word = "having" if isinstance(node.input, Aggregate) else "where"
            return [*dump_node(node.input), f"-- {word}: {show(node.condition)}"]
        case Union():
            lines = []
            for at, branch in enumerate(node.inputs):
                lines += [f"-- branch: {at}", *dump_node(branch)]
            return [*lines, f"-- union: of {len(node.inputs)}"]
        case Generate():
            made = f"{', '.join(node.columns)} = {node.function}({show(node.argument)})"
            return [*dump_node(node.input), f"-- generate: {made}{', outer' * node.outer}"]
        case AssignWindows():
            return [*dump_node(node.input), f"-- windows: {dump_window(node.window)}"]
        case Project():
            lines = dump_node(node.input)
            return lines + [
                f"-- output: {each.name} = {show(each.scalar)}" for each in node.columns
            ]
        case Aggregate():
            lines = dump_node(node.input)
            lines.append(
                f"-- window: {dump_window(node.window)}" if node.window else "-- window: none"
            )
            lines += [f"-- key: key_{at} = {show(key)}" for at, key in enumerate(node.keys)]
            lines += [
                f"-- call: call_{at} = {dump_call(call)}" for at, call in enumerate(node.calls)
            ]
            return lines
    raise AssertionError(node)


def show(scalar: Scalar) -> str:
    return scalar.render(lambda column: column)


def dump_window(window: Window) -> str:
    text = f"{window.size_us} us"
    if window.gap_us is not None:
        text = f"session, gap {text}"
    if window.overlaps:
        text = f"{window.kind}, {text}, every {window.slide_us} us"
    if window.offset_us:
        text += f", from {window.offset_us} us"
    if window.time is not None:
        text += f", over {show(window.time)}"
    return text if window.zone is None else f"{text}, days of {window.zone}"


def dump_call(call: Call) -> str:
    arguments = ", ".join([*map(show, call.arguments), *call.parameters])
    text = f"{call.function}({arguments})"
    text += ", without nulls" if call.ignores_nulls else ""
    return text + (f", where {show(call.condition)}" if call.condition else "")


def run(case: Case) -> list[str]:
    given = len(parse_project({"streams.sql": STREAMS}).streams)
    try:
        project = parse_project({"streams.sql": STREAMS, "case.sql": case.sql})
    except DefinitionError as error:
        return [f"-- error: {problem}" for problem in error.problems]
    check_round_trip(project)
    lines = [line for stream in project.streams[given:] for line in dump_stream(stream)]
    for query in project.queries:
        lines.append(f"-- query: {query.kind} {query.name} reads {', '.join(query.reads)}")
        lines += dump_node(query.query)
    lines += [line for view in project.views for line in dump_view(view)]
    return lines + [
        f"-- sink: {sink.name} of {sink.view} to {sink.topic}, {sink.mode}"
        for sink in project.sinks
    ]


def check_round_trip(project: Definitions) -> None:
    """Read each definition's text again, alone, as the engine does with old versions."""
    for stream in project.streams:
        assert parse_project({"again.sql": stream.sql}).stream(stream.name) == stream
    below = [each.sql for each in (*project.streams, *project.queries)]
    for view in project.views:
        own = [view.sql] if view.sql not in below else []
        again = parse_project({"again.sql": ";\n".join([*own, *below])})
        assert again.view(view.name) == view
        assert from_canonical(to_canonical(view)) == replace(view, sql="")


@pytest.mark.parametrize("file", FILES)
def test_definitions_become_what_the_golden_file_says(file: str) -> None:
    cases = read_cases(file)
    answers = [run(case) for case in cases]
    if os.environ.get("HEADRACE_GOLDEN") == "write":
        texts = zip(cases, answers, strict=True)
        (GOLDEN / file).write_text(
            "\n".join(
                f"-- case: {each.title}\n{each.sql}\n" + "".join(f"{line}\n" for line in lines)
                for each, lines in texts
            )
        )
    for case, lines in zip(cases, answers, strict=True):
        assert lines == case.expected, case.title


def test_every_case_says_what_it_expects() -> None:
    cases = [case for file in FILES for case in read_cases(file)]
    assert all(case.expected for case in cases)
    refused = [case for case in cases if case.expected[0].startswith("-- error")]
    assert len(refused) >= 60
