"""`headrace status`: streams, views, units, once or again and again."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.output import (
    JsonOption,
    console,
    make_table,
    moment,
    show_json,
    show_renderable,
)

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from headrace.project.config import Config

__all__ = ["status", "status_tables"]

WATCH_SECONDS = 1.0


def status(
    project: ProjectOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again every second.")] = False,
    json: JsonOption = False,
) -> None:
    """Show how far streams and views are: positions, lag, watermarks, counters, last turns."""
    config = find_config(project)
    if watch and not json and sys.stdout.isatty():
        _watch(config)
    while True:
        found = _take(config)
        if json:
            show_json(found)
        else:
            show_renderable(status_tables(found))
        if not watch:
            return
        time.sleep(WATCH_SECONDS)


def _take(config: "Config") -> dict[str, Any]:
    from headrace.serve.access import open_desk

    # Opened each time: an engine may start or end between two looks.
    with open_desk(config) as desk:
        return desk.status()


def _watch(config: "Config") -> None:
    from rich.live import Live

    with Live(status_tables(_take(config)), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(WATCH_SECONDS)
            live.update(status_tables(_take(config)), refresh=True)


def status_tables(found: dict[str, Any]) -> "Group":
    """Return a status, as its JSON gives it, as tables."""
    from rich.console import Group
    from rich.text import Text

    streams, views = found["streams"], found["views"]
    parts: list[Any] = [
        _table("streams", [_stream_row(stream) for stream in streams]),
        _table("partitions", [_partition_row(s, p) for s in streams for p in s["partitions"]]),
        _table("views", [_view_row(view) for view in views]),
        _table("units", [_unit_row(unit) for unit in found["units"]]),
    ]
    if found["operators"]:
        parts.insert(3, _table("operators", [_operator_row(each) for each in found["operators"]]))
    parts += [
        Text(f"view {v['name']}@{v['version']} {v['state']}: {v['reason']}")
        for v in found["views"]
        if v["reason"]
    ]
    bounds = " ".join(f"{name}={value}" for name, value in found["bounds"].items())
    parts.append(Text(f"outbox: {found['outbox_records']:,} records waiting"))
    if found["sinks"]:
        parts.append(_table("sinks", found["sinks"]))
        parts.append(Text(f"sinks: {found['emission_rows']:,} rows waiting"))
    if found["void_markers"]:
        parts.append(
            Text(
                f"headrace.time: {found['void_markers']:,} records are void: nobody but the engine "
                f"writes there, and theirs change nothing"
            )
        )
    parts.append(Text(f"bounds: {bounds}"))
    return Group(*parts)


def _table(title: str, rows: list[dict[str, object]]) -> "Table":
    columns = list(rows[0]) if rows else ["nothing yet"]
    return make_table(title, columns, [list(row.values()) for row in rows])


def _stream_row(stream: dict[str, Any]) -> dict[str, object]:
    return {
        "stream": stream["name"],
        "topic": stream["topic"],
        "state": stream["state"],
        "read by": ", ".join(stream["readers"]),
        "lag": stream["lag_records"],
        "watermark": moment(stream["watermark_us"]),
        **stream["counters"],
    }


def _partition_row(stream: dict[str, Any], partition: dict[str, Any]) -> dict[str, object]:
    return {
        "partition": f"{stream['topic']}/{partition['partition']}",
        "position": partition["position"],
        "end": partition["end_offset"],
        "lag": partition["lag_records"],
        "clock": moment(partition["clock_us"]),
        "watermark": moment(partition["watermark_us"]),
        "idle": "idle" if partition["idle"] else "",
    }


def _view_row(view: dict[str, Any]) -> dict[str, object]:
    return {
        "view": view["name"],
        "version": view["version"],
        "state": view["state"],
        "read by": ", ".join(view["readers"]),
        "unit": view["unit"],
        "rows": view["state_rows"],
        "bytes (about)": view["state_bytes_estimate"],
        "lag": view["lag_records"],
        "closed before": moment(view["watermark_us"]),
        **view["counters"],
    }


def _operator_row(operator: dict[str, Any]) -> dict[str, object]:
    return {
        "operator": operator["operator"],
        "stream": operator["stream"],
        "unit": operator["unit"],
        "rows": operator["state_rows"],
        "bytes": operator["state_bytes"],
        "files": operator["runs"],
    }


def _unit_row(unit: dict[str, Any]) -> dict[str, object]:
    last = unit["last"] or {"gear": "-", "records": 0, "milliseconds": {}}
    steps = last["milliseconds"]
    return {
        "unit": unit["name"],
        "turn": unit["turn"],
        "gear": last["gear"],
        "records": last["records"],
        "ms": round(sum(steps.values()), 1),
        "ms per step": " ".join(f"{step} {value:g}" for step, value in steps.items()) or "-",
    }
