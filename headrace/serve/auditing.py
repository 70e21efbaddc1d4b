"""Audit a project in this process, which asks the engine, or the store, for one table at a time.

Each time anew: an engine may start or end meanwhile, and no store is kept open.
"""

from collections.abc import Callable
from typing import BinaryIO

from headrace.log.opening import open_log
from headrace.observe.audit import Audit, audit
from headrace.project.config import Config
from headrace.serve.access import open_desk, running_engine, start_project_spark

__all__ = ["audit_project"]

# That a running engine gets to read what the log holds when the audit begins.
_WAIT_SECONDS = 60.0


def audit_project(config: Config, on_progress: Callable[[int, int], None]) -> Audit:
    """Recompute a project's tables from its log. Unreachable: there is no store yet.

    PositionLost: records that were read are gone. EngineError: the views changed meanwhile.
    """

    def export(sink: BinaryIO, table: str | None) -> None:
        with open_desk(config) as desk:
            desk.export(sink, table)

    with open_desk(config):
        pass  # before Spark starts: is there anything to audit?
    runs = running_engine(config) is not None
    log = open_log(config.log)
    try:
        return audit(
            log,
            export,
            start_project_spark(config),
            settings=config.settings,
            wait_seconds=_WAIT_SECONDS if runs else 0.0,
            on_progress=on_progress,
        )
    finally:
        log.close()
