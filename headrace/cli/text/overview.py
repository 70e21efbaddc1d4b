"""How fast an engine is going, from its last turns: the head of `headrace status --watch`."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.text.output import make_table, table_width
from headrace.cli.text.quantities import duration_text

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["overview", "percentile"]

Json = Mapping[str, Any]

LAST_US = 60_000_000
_STEPS = ("plan", "read", "stamp", "step", "fold", "stage", "commit", "publish")


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least this share of values does not exceed."""
    if not values:
        return None
    return round(sorted(values)[max(0, math.ceil(share * len(values)) - 1)], 1)


def overview(status: Json, turns: Sequence[Json], *, width: int | None = None) -> "Group":
    """Return throughput, freshness and turn latency of the last minute, as two small tables."""
    from rich.console import Group

    room = width or table_width()
    now_us = status["taken_us"]
    recent = [each for each in turns if each["ended_us"] > now_us - LAST_US]
    totals = [sum(each["milliseconds"].values()) for each in recent]
    fresh = [each["fresh_ms"] for each in recent if each["fresh_ms"] is not None]
    seconds = _seconds(recent, now_us)
    behind = [
        now_us - stream["watermark_us"]
        for stream in status["streams"]
        if stream["watermark_us"] is not None
    ]
    figures: dict[str, object] = {
        "records/s": round(sum(each["records"] for each in recent) / seconds),
        "turns/s": round(len(recent) / seconds, 1),
        "fresh p50 ms": percentile(fresh, 0.5),
        "p99": percentile(fresh, 0.99),
        "turn p50 ms": percentile(totals, 0.5),
        "p99 ": percentile(totals, 0.99),
        "watermark behind": duration_text(max(behind) // 1_000_000 * 1_000_000) if behind else "",
    }
    steps = {
        step: percentile([each["milliseconds"].get(step, 0.0) for each in recent], 0.5)
        for step in _STEPS
    }
    return Group(
        make_table("", list(figures), [list(figures.values())], null="-", width=room),
        make_table("", [f"{each} ms" for each in steps], [list(steps.values())], null="-",
                   width=room),
    )  # fmt: skip


def _seconds(recent: Sequence[Json], now_us: int) -> float:
    """Return how long the turns took that are looked at, and at least a second."""
    first_us = min((each["ended_us"] for each in recent), default=now_us)
    return max(1.0, (now_us - first_us) / 1_000_000)
