"""Where questions are answered: status, SQL and explain as JSON values, and exports.

`Desk` is what the command line asks. `StoreDesk` answers from log and store, inside the engine's
process or, when no engine runs, in the asker's own; `serve.client` asks a running engine. Both
give the same names and numbers.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from headrace.errors import QueryRefused, TableNotFound
from headrace.ledger.entries import TurnReport
from headrace.log.base import Log
from headrace.observe.drift import find_drift
from headrace.observe.status import EngineStatus, take_status
from headrace.plan.explain import explain_view
from headrace.plan.stages import Pipeline, tables_of
from headrace.project.disk import Disk
from headrace.project.settings import Settings
from headrace.serve.exporting import write_view
from headrace.serve.missing import explain_missing
from headrace.serve.queries.answer import Answer
from headrace.serve.queries.forms import Form
from headrace.serve.queries.here import answer_here
from headrace.serve.queries.pool import QueryPool
from headrace.serve.signal import Signal
from headrace.store.base import MAX_ROWS, Store
from headrace.store.opening import describe_table

__all__ = ["Desk", "StoreDesk"]

_STATUS_SECONDS = 1.0

Json = dict[str, Any]


class Desk(Protocol):
    """Whom the command line asks."""

    def status(self) -> Json:
        """Return what is going on."""
        ...

    def sql(self, sql: str, *, max_rows: int = MAX_ROWS) -> Json:
        """Answer one reading statement. QueryRefused."""
        ...

    def table(self, sql: str, *, max_rows: int = MAX_ROWS) -> pa.Table:
        """Answer one reading statement with its types. QueryRefused."""
        ...

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        """Write what the store exports: its ledger, or the rows of a physical table."""
        ...

    def export_view(self, sink: BinaryIO, view: str) -> None:
        """Write all rows of a view, or of its errors, at one commit (`exporting.py`)."""
        ...

    def explain(self) -> list[Json]:
        """Return the plan of every view."""
        ...

    def turns(self) -> list[Json]:
        """Return the last turns of a running engine, newest first; none without one."""
        ...


class _Kept(NamedTuple):
    """A status, and the commits that were counted when it was taken."""

    commits: int
    at: float
    status: Json


class StoreDesk:
    """Answers from log and store. Queries are answered by `queries`, or here without."""

    def __init__(
        self,
        project: str,
        log: Log,
        store: Store,
        settings: Settings,
        *,
        pipelines: Callable[[], Sequence[Pipeline]],
        disk: Disk | None = None,
        engine: EngineStatus | None = None,
        last_turns: Callable[[], Mapping[str, TurnReport]] = dict,
        prepares_plans: bool = True,
        commits: Signal | None = None,
        queries: QueryPool | None = None,
    ) -> None:
        self._project = project
        self._log = log
        self._store = store
        self._settings = settings
        self._pipelines = pipelines
        self._disk = disk
        self._engine = engine
        self._last_turns = last_turns
        self._prepares_plans = prepares_plans
        self._commits = commits
        self._kept: _Kept | None = None
        self._status_lock = threading.Lock()
        self._queries = queries

    def status(self) -> Json:
        """Return what is going on; inside of an engine, worked out once for a commit.

        Also once a second, since the log's ends and the files move between commits.
        """
        if self._commits is None:
            return self._take_status()
        with self._status_lock:
            count, now = self._commits.count, time.monotonic()
            kept = self._kept
            if kept is None or kept.commits != count or now > kept.at + _STATUS_SECONDS:
                kept = self._kept = _Kept(count, now, self._take_status())
            return kept.status

    def pipelines(self) -> Sequence[Pipeline]:
        """Return what the turns of all units do."""
        return self._pipelines()

    def _take_status(self) -> Json:
        with self._store.open() as snapshot:
            status = take_status(
                self._project,
                snapshot,
                self._log,
                self._settings,
                last_turns=self._last_turns(),
                engine=self._engine,
                definitions=find_drift(self._disk, snapshot) if self._disk else None,
            ).to_json()
            return {**status, "commit": snapshot.commits(), "taken_us": time.time_ns() // 1000}

    def sql(self, sql: str, *, max_rows: int = MAX_ROWS) -> Json:
        """Answer one reading statement. QueryRefused: not one, or past its limits."""
        answer = self.answer(sql, form=Form.JSON, max_rows=max_rows)
        return dict(json.loads(b"".join(answer.json_chunks())))

    def table(self, sql: str, *, max_rows: int = MAX_ROWS) -> pa.Table:
        """Answer one reading statement with its types. QueryRefused: as `sql`."""
        return self.answer(sql, form=Form.ARROW, max_rows=max_rows).table()

    def answer(
        self,
        sql: str,
        *,
        form: Form,
        max_rows: int = MAX_ROWS,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Answer one reading statement in a form. QueryRefused: as `sql`.

        `cancelled` is asked now and then: whether nobody waits for the answer any more.
        """
        most = min(max_rows, MAX_ROWS)
        try:
            if self._queries is None:
                return answer_here(self._store, sql, form=form, max_rows=most)
            return self._queries.ask(sql, form=form, max_rows=most, cancelled=cancelled)
        except TableNotFound as error:
            with self._store.open() as snapshot:
                raise QueryRefused(explain_missing(error.table, snapshot)) from error

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        """Write what the store exports: its ledger, or the rows of a physical table. StoreError."""
        with self._store.open() as snapshot:
            snapshot.export(sink, table)

    def export_view(self, sink: BinaryIO, view: str) -> None:
        """Write all rows of a view, or of its errors, at one commit. QueryRefused, StoreError."""
        with self._store.open() as snapshot:
            write_view(snapshot, sink, view)

    def explain(self) -> list[Json]:
        """Return the plan of every view."""
        return [
            explain_view(
                pipeline, table, describe_table(table), prepared=self._prepares_plans
            ).to_json()
            for pipeline in self._pipelines()
            for table in tables_of(pipeline.folds)
        ]

    def turns(self) -> list[Json]:
        """Return no turns: only a running engine, which is asked over HTTP, has them."""
        return []
