"""`headrace run`: the engine, with one line per turn on stderr."""

import json as json_module
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_folder
from headrace.cli.interrupts import heed_interrupts
from headrace.cli.text.output import JsonOption
from headrace.cli.text.problems import showing_places
from headrace.errors import DefinitionError, UsageError

if TYPE_CHECKING:
    from headrace.engine.engine import Engine
    from headrace.ledger.entries import TurnReport
    from headrace.serve.process import Served

__all__ = ["TurnLog", "run", "set_up_logging"]

logger = logging.getLogger("headrace.run")

_PROGRESS_SECONDS = 2.0


def run(
    project: ProjectOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="End at the end of the log as it is now.")
    ] = False,
    end_of_input: Annotated[
        bool,
        typer.Option(
            "--end-of-input", help="With --once: no more records come, so close every window."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Apply edited definitions, when they are valid.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Keep the project's views up to date, until Ctrl-C or SIGTERM."""
    if end_of_input and not once:
        raise UsageError("--end-of-input goes with --once: what is running has no end of input.")
    if watch and once:
        raise UsageError("--watch cannot be used with --once, which ends at the end of the log.")
    from headrace.project.folder import open_project

    folder = find_folder(project)
    with showing_places(folder):
        opened = open_project(folder)
    set_up_logging(json=json)
    from headrace.serve.process import serving
    from headrace.serve.starting import Stopped

    failed = False
    with showing_places(folder), heed_interrupts() as interrupts:
        try:
            with serving(
                opened,
                interrupts.stop,
                tell=logger.info,
                patient=not once,
                watches=watch,
            ) as served:
                if sys.stderr.isatty():  # a file of logs is no place for a token
                    logger.info("dashboard: %s", served.link)
                if once:
                    _turn_once(served, interrupts.stop, end_of_input=end_of_input)
                else:
                    _turn_on(served, interrupts.stop, watch=watch)
                failed = _report_failed(served.engine)
        except Stopped:
            logger.info("stopped before the first turn")
    # A view that failed makes the answer of a whole pass over the log incomplete.
    raise typer.Exit(interrupts.exit_code or (1 if once and failed else 0))


def _turn_once(served: "Served", stop: threading.Event, *, end_of_input: bool) -> None:
    from headrace.engine.running import run_engine

    served.on_turn = TurnLog(served)
    run_engine(served.engine, stop, once=True, end_of_input=end_of_input)
    served.engine.keep_times()


def _turn_on(served: "Served", stop: threading.Event, *, watch: bool) -> None:
    """Turn until told to stop; edited definitions are noticed and, if to be watched, applied."""
    from headrace.engine.running import run_engine
    from headrace.observe.drift import Drift
    from headrace.serve.starting import Stopped
    from headrace.serve.watching import DefinitionsWatch, refuse

    watching = DefinitionsWatch(served, stop, applies=watch)
    watching.start()
    served.on_turn = TurnLog(served)
    while True:
        run_engine(served.engine, watching.pause)
        served.engine.keep_times()
        edits = watching.take()
        if edits is None or stop.is_set():
            return
        try:
            served.renew(edits, stop)
        except DefinitionError as error:
            refuse(Drift((), tuple(map(str, error.problems))))
        except Stopped:
            return


def _report_failed(engine: "Engine") -> bool:
    from headrace.ledger.entries import HoldingState

    failed = [unit for unit in engine.units.values() if unit.state is HoldingState.FAILED]
    for unit in failed:
        names = ", ".join(fold.name for fold in unit.folds)
        logger.error("view %s failed: %s", names, unit.reason)
    return bool(failed)


class TurnLog:
    """Logs every turn and, while the engine is behind, now and then how far."""

    def __init__(self, served: "Served") -> None:
        self._served = served
        self._said = time.monotonic()
        self._records = 0

    def __call__(self, report: "TurnReport") -> None:
        """Log one turn."""
        fields: dict[str, object] = {
            "turn": report.turn,
            "unit": report.unit,
            "gear": report.gear,
            "records": report.records,
            "late": report.late,
            "dead": report.dead,
            "ms": round(sum(report.milliseconds.values()), 1),
            **{f"{step}_ms": value for step, value in report.milliseconds.items()},
        }
        logger.info("turn", extra={"fields": fields})
        self._records += report.records
        now = time.monotonic()
        if now - self._said < _PROGRESS_SECONDS:
            return
        rate = self._records / (now - self._said)
        self._said, self._records = now, 0
        engine = self._served.engine
        unit = engine.units.get(report.unit)
        if unit is None:
            return
        ends = engine.planner.extents(unit)
        left = sum(ends[key].end_offset - unit.progress[key].offset for key in ends)
        if left > rate:  # more than a second behind
            extra = {
                "unit": report.unit,
                "lag_records": left,
                "records_per_second": round(rate),
                "seconds_left": round(left / rate) if rate else None,
            }
            logger.info("catching up", extra={"fields": extra})


class _TextFormatter(logging.Formatter):
    """`time message key=value ...`; warnings and errors say so."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        words = [f"{name}={value}" for name, value in fields.items()]
        message = record.getMessage()
        if message != "turn":  # turn=12 says it
            words.insert(0, level + message)
        return " ".join([_time(record), *words])


class _JsonFormatter(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json_module.dumps(entry, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up_logging(*, json: bool, level: int = logging.INFO) -> None:
    """Send the log of Headrace to stderr, as text or as lines of JSON; of others, warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if json else _TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("headrace").setLevel(level)
    # Kafka's client tells of every attempt while a broker is away; the engine says it once.
    logging.getLogger("headrace.log.kafka").setLevel(logging.CRITICAL)
