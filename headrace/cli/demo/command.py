"""`headrace demo`: a project, traffic, the engine, and a view of it all, in one process."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.ask import audit_line
from headrace.cli.dashboard import open_in_browser
from headrace.cli.interrupts import Interrupts, heed_interrupts
from headrace.cli.run import set_up_logging
from headrace.cli.text.output import JsonOption, console, note, show_json, show_progress, show_text
from headrace.cli.text.quantities import parse_seconds
from headrace.errors import AuditFailed, AuditIncomplete, EngineError

if TYPE_CHECKING:
    from headrace.cli.demo.view import Sight
    from headrace.project.folder import OpenProject
    from headrace.serve.process import Served

__all__ = ["demo"]

_LIVE_SECONDS = 0.5
_LINE_SECONDS = 2.0
_DRAIN_SECONDS = 60.0


def demo(
    duration: Annotated[
        str | None, typer.Option("--for", help="End by itself, with an audit: 30s, 2m.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Repeats the same payments.")] = 1,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Payments a second.")] = 1_000,
    folder: Annotated[Path, typer.Option("--dir", help="The project; made if missing.")] = Path(
        "demo"
    ),
    kafka: Annotated[
        str | None, typer.Option(help="Keep the log on Kafka at host:port, not in the folder.")
    ] = None,
    browse: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the dashboard, from a terminal.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Show it run: shop traffic, its tables live, and the dashboard; Ctrl-C ends it."""
    seconds = None if duration is None else parse_seconds("--for", duration)
    from headrace.cli.demo.project import open_demo
    from headrace.serve.process import serving
    from headrace.serve.starting import Stopped

    opened = open_demo(folder, kafka)
    set_up_logging(json=False, level=logging.WARNING)
    found: dict[str, Any] | None = None
    with heed_interrupts() as interrupts:
        try:
            with serving(opened, interrupts.stop, tell=note) as served:
                note(f"dashboard: {served.link}")
                if browse and not json and sys.stdout.isatty():
                    open_in_browser(served.link)
                found = _Demo(opened, served, interrupts, seed, rate, live=not json).run(seconds)
        except Stopped:
            note("ended before the first turn")
    if found is not None:
        _show_summary(found, opened, json=json)
        if found["audit"] is not None and found["audit"]["differences"]:
            raise AuditFailed(found["audit"]["differences"])
        if found["audit"] is not None and found["audit"]["unread"]:
            raise AuditIncomplete(found["audit"]["unread"])
    raise typer.Exit(interrupts.exit_code)


def _show_summary(found: dict[str, Any], opened: "OpenProject", *, json: bool) -> None:
    if json:
        show_json(found)
        return
    show_text(
        f"{found['appended']:,} payments in {found['seconds']:g} s, "
        f"{found['events_per_second']:,} a second; {found['turns']:,} turns, "
        f"p50 {found['turn_ms_p50']} ms, p99 {found['turn_ms_p99']} ms"
    )
    show_text(
        f"read {found['read']:,}, late {found['late']:,}, dead {found['dead']:,}, "
        f"not yet read {found['lag_records']:,} (all runs in {opened.config.folder})"
    )
    if found["audit"] is not None:
        show_text(audit_line(found["audit"]))
    show_text(f"look around: headrace sql -p {opened.config.folder} 'FROM countries'")


class _Demo:
    """Runs the engine in a thread and the view in this one."""

    def __init__(
        self,
        opened: "OpenProject",
        served: "Served",
        interrupts: Interrupts,
        seed: int,
        rate: int,
        *,
        live: bool,
    ) -> None:
        from headrace.cli.demo.traffic import Traffic
        from headrace.cli.demo.view import Latencies

        self._config = opened.config
        self._served = served
        self._interrupts = interrupts
        self._live = live and sys.stdout.isatty()
        self._latencies = Latencies()
        self._traffic = Traffic(served.engine.tools.log, seed=seed, rate=rate)
        self._failures: list[BaseException] = []
        self._engine_stop = threading.Event()
        self._started = time.monotonic()

    def run(self, seconds: float | None) -> dict[str, Any]:
        """Show the demo until its time is over or a signal comes; return the summary."""
        self._served.on_turn = lambda report: self._latencies.note(
            sum(report.milliseconds.values())
        )
        turning = threading.Thread(target=self._turn, name="engine")
        self._started = time.monotonic()
        turning.start()
        try:
            self._traffic.start()
            self._watch(seconds)
            self._traffic.stop()
            lasted = time.monotonic() - self._started
            if seconds is not None:
                self._drain()
        finally:
            self._engine_stop.set()
            turning.join()
        self._raise_failures()
        found = self._look(lasted).to_json()
        audits = seconds is not None and not self._interrupts.came
        return {**found, "folder": str(self._config.folder), "audit": self._audit(audits)}

    def _turn(self) -> None:
        from headrace.engine.running import run_engine

        try:
            run_engine(self._served.engine, self._engine_stop)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._failures.append(error)

    def _raise_failures(self) -> None:
        if self._failures:
            raise self._failures[0]
        if self._traffic.failure is not None:
            raise EngineError(f"the traffic ended: {self._traffic.failure}")

    def _watch(self, seconds: float | None) -> None:
        with self._shown() as show:
            pause = _LIVE_SECONDS if self._live else _LINE_SECONDS
            while not self._interrupts.stop.is_set():
                passed = time.monotonic() - self._started
                left = pause if seconds is None else min(pause, seconds - passed)
                if left <= 0:
                    return
                self._interrupts.stop.wait(left)
                self._raise_failures()
                show(self._look(time.monotonic() - self._started))

    @contextmanager
    def _shown(self) -> Iterator[Any]:
        if not self._live:
            yield lambda sight: note(sight.line())
            return
        from rich.live import Live

        with Live(console=console(), auto_refresh=False, transient=True) as live:
            yield lambda sight: live.update(sight.picture(), refresh=True)

    def _drain(self) -> None:
        """Let the engine read what is left, so that the audit covers all of it."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self._look(0).lag_records and not self._interrupts.stop.wait(0.1):
            self._raise_failures()
            if time.monotonic() > deadline:
                note(f"the engine is still behind after {_DRAIN_SECONDS:g} s; going on")
                return

    def _look(self, seconds: float) -> "Sight":
        from headrace.cli.demo.view import MINUTES_QUERY, Sight
        from headrace.observe.status import take_status

        tools = self._served.engine.tools
        with tools.store.open() as snapshot:
            status = take_status(
                self._config.name, snapshot, tools.log, self._served.engine.settings
            )
            rows = snapshot.query(MINUTES_QUERY).to_pydict().values() if self._live else ()
        return Sight(
            seconds=seconds,
            appended=self._traffic.appended,
            events_per_second=self._traffic.appended / seconds if seconds else 0.0,
            turns=self._latencies.turns,
            turn_ms_p50=self._latencies.at(0.5),
            turn_ms_p99=self._latencies.at(0.99),
            status=status,
            minutes=list(zip(*rows, strict=True)),
        )

    def _audit(self, wanted: bool) -> dict[str, Any] | None:
        if not wanted:
            return None
        from headrace.observe.audit import audit, export_of
        from headrace.serve.starting import Stopped

        tools = self._served.engine.tools
        note("auditing: everything is read again from the log")
        with show_progress("audit") as progress:

            def tell(done: int, all: int) -> None:
                if self._interrupts.came:
                    raise Stopped
                progress(done, all)

            try:
                return audit(
                    tools.log,
                    export_of(tools.store),
                    tools.spark,
                    settings=self._served.engine.settings,
                    on_progress=tell,
                ).to_json()
            except Stopped:
                return None
