"""Metrics as Prometheus scrapes them.

What a turn did is counted when it ends. The rest (lag, watermarks, counters, state) is read when it
is scraped, from one status; a status is worked out once for a commit, however many ask.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.serve.turns import EndedTurn, Turns

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
#: The last three are those of tables.
_STREAM_COUNTERS = ("read", "accepted", "dead", "duplicate", "upserts", "deletes", "ignored")
_VIEW_COUNTERS = ("seen", "skipped", "dead", "matched", "pairs", "folded", "late")

Json = Mapping[str, Any]


class Metrics:
    """All metrics of a served project. `status` is what `GET /v1/status` answers."""

    def __init__(self, turns: Turns, status: Callable[[], Json]) -> None:
        self._registry = CollectorRegistry()
        self._turns = Counter(
            "headrace_turns",
            "Turns that were committed.",
            ["unit", "gear"],
            registry=self._registry,
        )
        self._records = Counter(
            "headrace_turn_records", "Records that turns read.", ["unit"], registry=self._registry
        )
        self._steps = Histogram(
            "headrace_turn_seconds",
            "How long each step of a turn took.",
            ["unit", "step"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._fresh = Histogram(
            "headrace_freshness_seconds",
            "Age of a turn's newest record when it became visible.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_StatusCollector(status))
        turns.heed(self._note)

    def _note(self, turn: EndedTurn) -> None:
        report = turn.report
        self._turns.labels(report.unit, report.gear).inc()
        self._records.labels(report.unit).inc(report.records)
        for step, milliseconds in report.milliseconds.items():
            self._steps.labels(report.unit, step).observe(milliseconds / 1000)
        if turn.fresh_ms is not None:
            self._fresh.observe(turn.fresh_ms / 1000)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _StatusCollector:
    def __init__(self, status: Callable[[], Json]) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        return []  # or it would be asked for a status before there is one

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        yield from _streams(status)
        yield from _views(status)
        yield from _rest(status)


def _streams(status: Json) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "headrace_lag_records", "Records that are not read yet.", labels=["stream", "partition"]
    )
    delay = GaugeMetricFamily(
        "headrace_watermark_delay_seconds",
        "How far a stream's watermark is behind the wall clock.",
        labels=["stream"],
    )
    counted = {
        name: CounterMetricFamily(
            f"headrace_stream_{name}_records", f"Records {name}.", labels=["stream"]
        )
        for name in _STREAM_COUNTERS
    }
    for stream in status["streams"]:
        if stream["state"] != "live":
            continue
        for partition in stream["partitions"]:
            lag.add_metric([stream["name"], str(partition["partition"])], partition["lag_records"])
        if stream["watermark_us"] is not None:
            behind_us = status["taken_us"] - stream["watermark_us"]
            delay.add_metric([stream["name"]], behind_us / 1_000_000)
        for name, family in counted.items():
            if name in stream["counters"]:
                family.add_metric([stream["name"]], stream["counters"][name])
    yield from (lag, delay, *counted.values())


def _views(status: Json) -> Iterator[Metric]:
    rows = GaugeMetricFamily("headrace_state_rows", "Rows of state.", labels=["view", "version"])
    size = GaugeMetricFamily(
        "headrace_state_bytes",
        "Bytes of state, before the store compresses them (an estimate).",
        labels=["view", "version"],
    )
    live = GaugeMetricFamily("headrace_view_up", "1: the view is live.", labels=["view", "version"])
    counted = {
        name: CounterMetricFamily(f"headrace_view_{name}", f"Counter {name}.", labels=["view"])
        for name in _VIEW_COUNTERS
    }
    for view in status["views"]:
        labels = [view["name"], view["version"]]
        live.add_metric(labels, float(view["state"] == "live"))
        rows.add_metric(labels, view["state_rows"])
        size.add_metric(labels, view["state_bytes_estimate"])
        if view["state"] == "live":
            for name, family in counted.items():
                family.add_metric([view["name"]], view["counters"][name])
    yield from (live, rows, size, *counted.values())


def _rest(status: Json) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "headrace_operator_state_bytes", "Bytes of operators' state.", labels=["operator", "stream"]
    )
    for each in status["operators"]:
        state.add_metric([each["operator"], each["stream"]], each["state_bytes"])
    yield state
    for name, text in (
        ("outbox_records", "Records that wait to be published to side topics."),
        ("sink_rows", "Changes that wait to be published to sinks."),
        ("written_rows", "Rows of written streams that wait to be published."),
    ):
        yield GaugeMetricFamily(f"headrace_{name}", text, value=status[name])
    yield CounterMetricFamily("headrace_commits", "Commits of the store.", value=status["commit"])
    for name, value in status["serving"].items():
        yield GaugeMetricFamily(f"headrace_serving_{name}", f"Of the server: {name}.", value=value)
