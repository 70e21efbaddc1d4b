"""One query, put to a process: planned, handed its tables, answered."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from headrace.errors import QueryRefused, TableNotFound
from headrace.serve.queries.answer import Answer
from headrace.serve.queries.exports import Exports, Handed, Needs, TablesChanged
from headrace.serve.queries.forms import Form
from headrace.serve.queries.positions import of_table, position_text, together
from headrace.serve.queries.wire import MAX_FILES
from headrace.serve.queries.worker import Worker
from headrace.store.base import PublicTable

__all__ = ["Question"]

logger = logging.getLogger("headrace.serve")

_PLANS = 3  # of one query, where the tables change while it is planned


@dataclass(frozen=True)
class Question:
    """A query, its limits, and when it was asked, on the monotonic clock."""

    sql: str
    form: Form
    max_rows: int
    deadline: float
    cancelled: Callable[[], bool]
    began: float

    def put_to(self, worker: Worker, exports: Exports, folder: Path) -> Answer:
        """Return the answer of a process that is free; a long one is in a file of `folder`.

        Errors are as of `QueryPool.ask`. The process is dead afterwards if it had to be killed.
        """
        everything = False
        for _ in range(_PLANS):
            known = exports.known()
            try:
                needs = self._plan(worker, known.tables)
            except QueryRefused:
                # It may name a table that came after the last look.
                if not worker.is_alive() or exports.known(fresh=True).tables == known.tables:
                    raise
                continue
            if everything:
                needs = _all_columns(needs, known.tables)
            try:
                handed = exports.hand_out(
                    needs, known.tables, deadline=self.deadline, cancelled=self.cancelled
                )
            except TablesChanged:
                continue
            try:
                answer = self._answer(worker, handed, folder)
            finally:
                exports.give_back(handed)
            if answer is not None:
                return answer
            everything = True
        raise QueryRefused("the tables change faster than the query is planned; ask again")

    def _plan(self, worker: Worker, tables: tuple[PublicTable, ...]) -> Needs:
        message: dict[str, Any] = {"plan": self.sql, "tables": None}
        if worker.knows != tables:
            message["tables"] = {table.name: table.columns for table in tables}
        reply = self._ask(worker, message)
        worker.knows = tables
        return _checked(reply["needs"], tables)

    def _answer(self, worker: Worker, handed: Handed, folder: Path) -> Answer | None:
        """Return the answer; None: a column was not handed over that it needs."""
        file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the answer
        try:
            reply = self._ask(
                worker,
                {
                    "answer": self.sql,
                    "tables": list(handed.files),
                    "form": self.form,
                    "max_rows": self.max_rows,
                },
                [*handed.descriptors(), file.fileno()],
            )
            if "not_handed" in reply:
                file.close()
                return None
        except BaseException:
            file.close()
            raise
        known = handed.known
        positions = {name: of_table(name, known.positions) for name in handed.files}
        return Answer(
            form=self.form,
            columns=reply["columns"],
            rows=reply["rows"],
            commit=known.commit,
            positions={name: position_text(each) for name, each in positions.items()},
            position=position_text(together(positions.values())),
            milliseconds=(time.monotonic() - self.began) * 1000,
            content_bytes=reply["bytes"],
            file=file,
        )

    def _ask(
        self, worker: Worker, message: dict[str, Any], files: Sequence[int] = ()
    ) -> dict[str, Any]:
        reply = worker.ask(message, files, deadline=self.deadline, cancelled=self.cancelled)
        if "missing" in reply:
            raise TableNotFound(reply["missing"])
        if "refused" in reply:
            raise QueryRefused(reply["refused"])
        if "failed" in reply:
            logger.warning("a query failed by an error of Headrace: %s", reply["failed"])
            raise QueryRefused(
                f"the query fails by an error of Headrace, please report it: {reply['failed']}"
            )
        if "out_of_memory" in reply:
            raise QueryRefused(
                f"the query needed more memory than the {worker.memory_bytes >> 20} MB that one "
                f"query has; aggregate, filter, or ask for fewer columns"
            )
        return reply


def _checked(needs: dict[str, list[str]], tables: Sequence[PublicTable]) -> Needs:
    """Return what a process says that a query reads; it may name nothing that is not there."""
    known = {table.name: {column.name for column in table.columns} for table in tables}
    if len(needs) >= MAX_FILES:
        raise QueryRefused(f"the query reads {len(needs)} tables; ask for fewer at once")
    for name, columns in needs.items():
        if not columns or not set(columns) <= known.get(name, set()):
            raise QueryRefused(f"the query cannot be planned: {name} has no such columns")
    return needs


def _all_columns(needs: Needs, tables: Sequence[PublicTable]) -> Needs:
    return {
        table.name: [column.name for column in table.columns]
        for table in tables
        if table.name in needs
    }
