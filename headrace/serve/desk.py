"""Where questions are answered: status, SQL, audit, explain, as JSON values.

`Desk` is what the command line asks. `StoreDesk` answers from log and store, inside the engine's
process or, when no engine runs, in the asker's own; `serve.client` asks a running engine. Both
give the same names and numbers.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import QueryRefused
from headrace.log.base import Log
from headrace.observe.status import take_status
from headrace.plan.explain import explain_view
from headrace.plan.stages import Pipeline, tables_of
from headrace.project.settings import Settings
from headrace.serve.values import answer_to_json
from headrace.store.base import MAX_ROWS, Store
from headrace.store.opening import describe_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MAX_ANSWER_BYTES", "Desk", "OnProgress", "StoreDesk"]

MAX_ANSWER_BYTES = 64 << 20

OnProgress = Callable[[int, int], None]
Json = dict[str, Any]


class Desk(Protocol):
    """Whom the command line asks."""

    def status(self) -> Json:
        """Return what is going on."""
        ...

    def sql(self, sql: str, *, max_rows: int = MAX_ROWS) -> Json:
        """Answer one reading statement. QueryRefused."""
        ...

    def audit(self, on_progress: OnProgress) -> Json:
        """Recompute everything from the log and return what was compared and what differs."""
        ...

    def explain(self) -> list[Json]:
        """Return the plan of every view."""
        ...


class StoreDesk:
    """Answers from log and store. Spark is asked for only where it is needed."""

    def __init__(
        self,
        project: str,
        log: Log,
        store: Store,
        settings: Settings,
        *,
        spark: Callable[[], "SparkSession"],
        pipelines: Callable[[], Sequence[Pipeline]],
    ) -> None:
        self._project = project
        self._log = log
        self._store = store
        self._settings = settings
        self._spark = spark
        self._pipelines = pipelines

    def status(self) -> Json:
        """Return what is going on."""
        with self._store.open() as snapshot:
            return take_status(self._project, snapshot, self._log, self._settings).to_json()

    def sql(self, sql: str, *, max_rows: int = MAX_ROWS) -> Json:
        """Answer one reading statement. QueryRefused: not one, or past its limits."""
        with self._store.open() as snapshot:
            table = snapshot.query(sql, max_rows=min(max_rows, MAX_ROWS))
            if table.nbytes > MAX_ANSWER_BYTES:
                raise QueryRefused(
                    f"the answer has {table.nbytes} bytes, {MAX_ANSWER_BYTES} is the most; ask for "
                    f"fewer rows or columns"
                )
            return answer_to_json(table)

    def audit(self, on_progress: OnProgress) -> Json:
        """Recompute everything from the log. What `on_progress` raises ends the audit."""
        from headrace.observe.audit import audit  # loads Spark, which the others do without

        found = audit(
            self._log, self._store, self._spark(), settings=self._settings, on_progress=on_progress
        )
        return {
            "ok": not found.differences,
            "records": found.records,
            "rows": found.rows,
            "counters": [
                {**owner._asdict(), "counters": dict(counters)}
                for owner, counters in sorted(found.counters.items())
            ],
            "differences": list(found.differences),
        }

    def explain(self) -> list[Json]:
        """Return the plan of every view."""
        return [
            explain_view(pipeline, table, describe_table(table)).to_json()
            for pipeline in self._pipelines()
            for table in tables_of(pipeline.folds)
        ]
