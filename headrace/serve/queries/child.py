"""The process that answers queries, one at a time: `python -m headrace.serve.queries.child`.

It is started by `worker.py`, holds itself to its limits before it reads the first question, and
ends with the engine. Questions and replies, as `wire.py` sends them:

    {"plan": sql, "tables": {name: [[column, type], ...]} or null, "seconds"}
        -> {"needs": {table: [column, ...]}}
    {"answer": sql, "tables": [name, ...], "form", "max_rows", "seconds"}, with the files of the
    tables and, last, one for the answer
        -> {"columns": [{"name", "type"}], "rows", "bytes"}

Instead of these: {"refused": text}, {"missing": table}, {"out_of_memory": true}, {"failed": text}:
an error of ours, {"not_handed": true}: a column is read that was not in `needs`. A reply with
"spent" is the last: another process should go on, because this one has taken much memory, or is in
an unknown state after an error of ours.
"""

import json
import mmap
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from headrace.errors import QueryRefused, StoreError, TableNotFound
from headrace.serve.queries.confining import (
    confine,
    die_with,
    limit_memory,
    private_bytes,
    within,
)
from headrace.serve.queries.forms import Form, encoded
from headrace.serve.queries.wire import receive, send
from headrace.store.duckdb.apart.failing import NotHandedOver, OutOfMemory
from headrace.store.duckdb.apart.planning import QueryPlanner
from headrace.store.duckdb.apart.reading import HandedTables

__all__ = ["main"]

_TOLD_CHARACTERS = 10_000  # of an error, whose text a query may make as long as it likes
_COLUMNS_BYTES = 1 << 20
_WARMING_SECONDS = 60.0
_WARMING = {"warm": [("a", "VARCHAR")]}


@dataclass(frozen=True)
class _Limits:
    memory_bytes: int
    answer_bytes: int
    seconds: float
    grace_seconds: float


class _Child:
    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._planner = QueryPlanner()
        # Less than the process may have: what DuckDB counts fails with a text of its own.
        self._tables = HandedTables(memory_bytes=limits.memory_bytes * 3 // 4)
        self._warm()
        self._began_bytes = private_bytes()
        limit_memory(limits.memory_bytes)

    def _warm(self) -> None:
        """Load what the first question would wait for."""
        self._learn(_WARMING)
        seconds = {"max_seconds": _WARMING_SECONDS, "limit_seconds": _WARMING_SECONDS}
        self._planner.needs("SELECT a FROM warm", **seconds)
        handed = {"warm": pa.table({"a": ["x"]})}
        with self._tables.answering("FROM warm", handed, max_rows=1, **seconds) as (_, found):
            list(found)

    def _learn(self, tables: dict[str, Any]) -> None:
        self._planner.learn(tables)
        self._tables.learn(tables)

    def reply(self, question: dict[str, Any], files: list[int]) -> dict[str, Any]:
        """Return the reply to a question; its files are closed."""
        try:
            with within(question["seconds"] + self._limits.grace_seconds):
                reply = self._plan(question) if "plan" in question else self._run(question, files)
        except TableNotFound as error:
            reply = {"missing": error.table[:_TOLD_CHARACTERS]}
        except QueryRefused as error:
            reply = {"refused": str(error)[:_TOLD_CHARACTERS]}
        except StoreError as error:  # DuckDB's words for a damaged file: there is none here
            reply = {"refused": f"the query fails: {error.__cause__}"[:_TOLD_CHARACTERS]}
        except NotHandedOver:
            reply = {"not_handed": True}
        except (OutOfMemory, MemoryError, pa.ArrowMemoryError):
            return {"out_of_memory": True, "spent": True}
        except Exception as error:  # noqa: BLE001 - who asked is told, and the engine logs it
            text = f"{type(error).__name__}: {error}"
            return {"failed": text[:_TOLD_CHARACTERS], "spent": True}
        finally:
            for file in files:
                os.close(file)
        is_last = "needs" not in reply and "not_handed" not in reply  # of this query
        # Memory that was freed stays with the process, and the next query would lack it.
        if is_last and private_bytes() - self._began_bytes > self._limits.memory_bytes // 4:
            reply["spent"] = True
        return reply

    def _plan(self, question: dict[str, Any]) -> dict[str, Any]:
        if question["tables"] is not None:
            self._learn(question["tables"])
        needs = self._planner.needs(
            question["plan"],
            max_seconds=question["seconds"],
            limit_seconds=self._limits.seconds,
        )
        return {"needs": needs}

    def _run(self, question: dict[str, Any], files: list[int]) -> dict[str, Any]:
        *handed, answer = files
        tables = {
            name: _mapped(file) for name, file in zip(question["tables"], handed, strict=True)
        }
        counts = _Counts()
        with (
            os.fdopen(answer, "wb", closefd=False) as sink,
            self._tables.answering(
                question["answer"],
                tables,
                max_rows=question["max_rows"],
                max_seconds=question["seconds"],
                limit_seconds=self._limits.seconds,
            ) as (schema, batches),
        ):
            form = Form(question["form"])
            for piece in encoded(form, schema, counts.count(batches)):
                counts.bytes += len(piece)
                self._write(sink, piece, counts.bytes)
        columns = [{"name": field.name, "type": str(field.type)} for field in schema]
        if len(json.dumps(columns)) > _COLUMNS_BYTES:
            raise QueryRefused("the columns of the answer are too many; ask for fewer")
        return {"columns": columns, "rows": counts.rows, "bytes": counts.bytes}

    def _write(self, sink: BinaryIO, piece: bytes | memoryview, written: int) -> None:
        if written > self._limits.answer_bytes:
            raise QueryRefused(
                f"the answer has more than {self._limits.answer_bytes} bytes; ask for fewer rows "
                f"or columns"
            )
        try:
            sink.write(piece)
            sink.flush()
        except OSError as error:
            raise QueryRefused(f"the answer cannot be kept: {error.strerror}") from error


class _Counts:
    """What an answer has so far."""

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


def _mapped(file: int) -> pa.Table:
    """Return the table of an Arrow file; its pages are shared with who wrote them."""
    content = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def main() -> None:
    """Answer questions until the engine hangs up."""
    die_with(sys.stdin.fileno())
    limits = _Limits(**json.loads(sys.argv[2]))
    confine(file_bytes=limits.answer_bytes + (1 << 20))
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    channel = socket.socket(fileno=int(sys.argv[1]))
    child = _Child(limits)
    send(channel, {"ready": True})
    while True:
        try:
            question, files = receive(channel)
        except EOFError:
            return
        reply = child.reply(question, files)
        send(channel, reply)
        if "spent" in reply:
            return


if __name__ == "__main__":
    main()
