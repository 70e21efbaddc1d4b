"""A status, as its JSON gives it, for people: few columns for all, every fact of one.

All of it fits 80 columns: what does not fit a table is a line of its own.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.text.output import make_table, moment, printable, table_width, wrap
from headrace.cli.text.quantities import duration_text
from headrace.wording import counted

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["all_details", "details", "summary"]

Json = dict[str, Any]

_TIMES = ("watermark", "closed before")


def summary(found: Json, *, width: int | None = None) -> "Group":
    """Return the few facts that say whether all is well."""
    from rich.console import Group

    room = width or table_width()
    views = [view for view in found["views"] if view["kind"] == "view"]
    written = [view for view in found["views"] if view["kind"] == "stream"]
    streams = [stream for stream in found["streams"] if stream["kind"] == "stream"]
    tables = [
        _table(map(_stream_row, streams), room, optional=("duplicate",)),
        _table(_table_rows(found), room, optional=("dead", "ignored")),
        _table(map(_view_row, views), room, optional=("dead", "errors")),
        _table(map(_written_row, written), room, optional=("dead",)),
    ]
    parts: list[Any] = [*_heads(found, room)]
    for table in tables:
        if table is not None:
            parts += [table, ""]
    parts += [_turn_line(unit) for unit in found["units"] if unit["last"] is not None]
    parts += _waiting(found)
    if not found["streams"]:
        parts.append("no stream yet: the engine enters the definitions when it starts")
    return Group(*_texts(parts, room))


def details(found: Json, *, width: int | None = None) -> "Group":
    """Return every fact of the streams and views of a status."""
    from rich.console import Group

    room = width or table_width()
    parts: list[Any] = [*_heads(found, room)]
    for stream in found["streams"]:
        parts += [*_stream_details(stream, room), ""]
    for view in found["views"]:
        parts += [*_view_details(view, room), ""]
    return Group(*_texts(parts[:-1], room))


def all_details(found: Json, *, width: int | None = None) -> "Group":
    """Return everything that a status says."""
    from rich.console import Group

    room = width or table_width()
    parts: list[Any] = [details(found, width=room), ""]
    for unit in found["units"]:
        parts += [_turn_line(unit), *_steps_line(unit)]
    for each in found["operators"]:
        parts.append(
            f"operator {each['operator']} of {each['stream']} in {each['unit']}: "
            f"{counted(each['state_rows'], 'state row')}, {counted(each['state_bytes'], 'byte')} "
            f"in {counted(each['runs'], 'file')}"
        )
    for sink in found["sinks"]:
        version = sink["version"] or "no version yet"
        parts.append(
            f"sink {sink['name']}: told of {sink['view']}@{version}, writes {sink['topic']} "
            f"({sink['mode']}), {counted(sink['rows'], 'row')} waiting"
            + (", paused" if sink["state"] == "paused" else "")
        )
    for each in found["changes"]:
        kept = [counted(each["sinks"], "sink"), counted(each["readers"], "reader")]
        kept += ["always"] if each["always"] else []
        held = counted(each["held_bytes"], "byte")
        parts.append(
            f"changes of {each['view']}: {counted(each['rows'], 'row')} kept since commit "
            f"{each['since']} for {', '.join(kept)}; {held} in memory"
        )
    parts += [
        f"outbox: {counted(found['outbox_records'], 'record')} waiting",
        f"sinks: {counted(found['sink_rows'], 'row')} waiting",
        f"written streams: {counted(found['written_rows'], 'row')} waiting",
        *_void(found),
        "bounds: " + " ".join(f"{name}={value}" for name, value in found["bounds"].items()),
    ]
    return Group(*_texts(parts, room))


def _texts(parts: Iterable[Any], room: int) -> Iterable[Any]:
    from rich.text import Text

    for part in parts:
        yield Text(wrap(printable(part), room)) if isinstance(part, str) else part


def _heads(found: Json, room: int) -> Iterable[Any]:
    """Return what is to be said first: whether an engine runs, and what is wrong."""
    from rich.text import Text

    engine = found["engine"]
    if engine is None:
        yield f"{found['project']}: no engine runs; `headrace run` starts one"
    else:
        watching = ", watching the definitions" if engine["watches"] else ""
        since = f"since {engine['started']}, pid {engine['pid']}{watching}"
        yield f"{found['project']}: engine running {since}"
    warnings = [*_definitions_line(found)]
    warnings += [
        f"{_called(view)} {view['name']}@{view['version']} {view['state']}: {view['reason']}"
        for view in found["views"]
        if view["reason"]
    ]
    warnings += [f"warning: {text}" for text in found["warnings"]]
    for warning in warnings:
        yield Text(wrap(printable(warning), room), style="yellow")
    yield ""


def _definitions_line(found: Json) -> Iterable[str]:
    from headrace.observe.drift import RESTART, Drift

    drift, engine = found["definitions"], found["engine"]
    if drift is None:
        return
    difference = Drift(tuple(drift["changed"]), tuple(drift["problems"]))
    text = difference.text()
    if drift["problems"]:
        yield f"{text}; `headrace check --types` shows all"
    elif engine is None:
        yield f"{text}: `headrace run` applies them"
    elif engine["watches"] and difference.needs_restart:
        yield f"{text}: {RESTART}"
    elif engine["watches"]:
        yield f"{text}: the engine applies them after this turn"
    else:
        yield f"{text}: restart, or `headrace run --watch`"


def _called(view: Json) -> str:
    return str(view["kind"])


def _table(rows: Iterable[Json], room: int, *, optional: Sequence[str] = ()) -> Any:
    found = list(rows)
    if not found:
        return None
    columns = [name for name in found[0] if name not in optional or any(row[name] for row in found)]
    cells = [[row[name] for name in columns] for row in found]
    rigid = [name in _TIMES for name in columns]
    return make_table("", columns, cells, rigid=rigid, width=room)


def _stream_row(stream: Json) -> Json:
    counters = stream["counters"]
    return {
        "stream": stream["name"],
        "state": stream["state"],
        "lag": stream["lag_records"],
        "read": counters["read"],
        "dead": counters["dead"],
        "duplicate": counters["duplicate"],
        "watermark": _second(stream["watermark_us"]),
    }


def _table_rows(found: Json) -> Iterable[Json]:
    """Return a row for each table: what it holds, and what its changes were."""
    views = {(each["name"], each["unit"]): each for each in found["views"]}
    for changes in found["streams"]:
        view = views.get((changes["name"], changes["unit"]))
        if changes["kind"] != "table" or view is None:
            continue
        counters = changes["counters"]
        yield {
            "table": changes["name"],
            "state": view["state"],
            "lag": changes["lag_records"],
            "keys": view["state_rows"],
            "upserts": counters.get("upserts", 0),
            "deletes": counters.get("deletes", 0),
            "ignored": counters.get("ignored", 0),
            "dead": counters["dead"],
        }


def _view_row(view: Json) -> Json:
    return {
        "view": view["name"],
        "state": view["state"],
        "lag": view["lag_records"],
        "state rows": view["state_rows"],
        "late": view["counters"]["late"],
        "dead": view["counters"]["dead"],
        "errors": view["error_rows"] or 0,
        "closed before": _second(view["watermark_us"]),
    }


def _written_row(stream: Json) -> Json:
    return {
        "written stream": stream["name"],
        "topic": stream["topic"],
        "state": stream["state"],
        "lag": stream["lag_records"],
        "records": stream["counters"]["folded"],
        "dead": stream["counters"]["dead"],
    }


def _second(microseconds: int | None) -> str:
    """Return a time without its fraction; `status VIEW` has it."""
    text = moment(microseconds)
    return f"{text[:19]}Z" if text.endswith("Z") else text


def _turn_line(unit: Json) -> str:
    last = unit["last"]
    if last is None:
        return f"unit {unit['name']}: no turn yet"
    which = "last turn" if unit["name"] == "main" else f"last turn of {unit['name']}"
    steps = last["milliseconds"]
    took = f"in {sum(steps.values()):,.0f} ms"
    if "commit" not in steps:  # the engine was killed before it could note how long that took
        took += " before the commit"
    records = counted(last["records"], "record")
    return f"{which}: {records} {took} (turn {unit['turn']}, {last['gear']})"


def _steps_line(unit: Json) -> Iterable[str]:
    if unit["last"] is not None:
        steps = unit["last"]["milliseconds"].items()
        yield "ms per step: " + ", ".join(f"{step} {value:g}" for step, value in steps)


def _waiting(found: Json) -> Iterable[str]:
    """Return what waits to be published, if anything does."""
    for name, noun, of in (
        ("outbox_records", "late, dead or duplicate record", ""),
        ("sink_rows", "row", " of sinks"),
        ("written_rows", "row", " of written streams"),
    ):
        if count := found[name]:
            yield f"{counted(count, noun)}{of} {'waits' if count == 1 else 'wait'} to be published"
    yield from _void(found)


def _void(found: Json) -> Iterable[str]:
    if found["void_markers"]:
        count = found["void_markers"]
        yield (
            f"headrace.time: {counted(count, 'record')} {'has' if count == 1 else 'have'} no "
            f"effect, because {'it was' if count == 1 else 'they were'} not written by the engine"
        )


def _stream_details(stream: Json, room: int) -> Iterable[Any]:
    is_table = stream["kind"] == "table"
    yield f"changes of table {stream['name']}" if is_table else f"stream {stream['name']}"
    yield _facts(
        {
            "version": stream["version"],
            "topic": stream["topic"],
            "state": stream["state"],
            "unit": stream["unit"],
            **({} if is_table else {"read by": ", ".join(stream["readers"]) or "no view"}),
            "lag": stream["lag_records"],
            "guarded": "yes"
            if stream["guarded"]
            else "no: records without arrival, so a clock that runs ahead closes windows",
            "watermark": moment(stream["watermark_us"]),
            **stream["counters"],
        },
        room,
    )
    rows = [
        {
            "partition": each["partition"],
            "position": each["position"],
            "end": each["end_offset"],
            "lag": each["lag_records"],
            "watermark": _second(each["watermark_us"]),
            "delay": duration_text(each["delay_us"]),
            "idle": "idle" if each["idle"] else "",
        }
        for each in stream["partitions"]
    ]
    if rows:
        yield ""
        yield _table(rows, room, optional=("idle",))


def _view_details(view: Json, room: int) -> Iterable[Any]:
    written = view["topic"] is not None
    yield f"{_called(view)} {view['name']}"
    kept = {
        "state rows": view["state_rows"],
        "state bytes": f"about {view['state_bytes_estimate']}",
    }
    yield _facts(
        {
            "version": view["version"],
            "state": view["state"],
            **({"reason": view["reason"]} if view["reason"] else {}),
            "unit": view["unit"],
            "reads": ", ".join(view["inputs"]),
            **({"writes": view["topic"]} if written else kept),
            **({"sinks": ", ".join(view["readers"])} if view["readers"] else {}),
            "lag": view["lag_records"],
            "closed before": moment(view["watermark_us"]),
            **view["counters"],
            **_errors(view),
        },
        room,
    )


def _errors(view: Json) -> Json:
    """Return how many rows of a view an expression fails on, if any."""
    return (
        {"errors": f"{view['error_rows']} (in {view['name']}.errors)"} if view["error_rows"] else {}
    )


def _facts(facts: Json, room: int) -> Any:
    from rich.text import Text

    edge = max(map(len, facts)) + 4
    lines = []
    for name, value in facts.items():
        first, *more = wrap(printable(str(value)), room - edge).split("\n")
        lines.append(f"  {name}".ljust(edge) + first)
        lines += [" " * edge + line for line in more]
    return Text("\n".join(lines))
