"""A few warm processes that answer queries of others.

The way of a query, `QueryPool.ask`:
1. It waits for a process that is free. TooManyQueries: too many wait, or it waited too long.
2. The process says which columns of which tables the query reads.
3. The engine hands them over, all of one commit (`exports.py`).
4. The process answers, into a file that is handed to it.
A process that was killed, or has taken much memory, is replaced by a new one meanwhile.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from headrace.errors import EngineError, TooManyQueries
from headrace.serve.queries.answer import Answer
from headrace.serve.queries.exports import Exports
from headrace.serve.queries.forms import Form
from headrace.serve.queries.limits import QueryLimits
from headrace.serve.queries.question import Question
from headrace.serve.queries.worker import Cancelled, Worker
from headrace.store.base import MAX_ROWS, Store
from headrace.wording import counted

__all__ = ["QueryPool"]

logger = logging.getLogger("headrace.serve")

_LOOK_SECONDS = 0.1  # between two looks whether the asker is still there
_TIDY_SECONDS = 1.0
_RESTART_SECONDS = 1.0  # after a process that did not start


class QueryPool:
    """Answers queries over the tables of a store. `folder` takes files if memory is short."""

    def __init__(
        self,
        store: Store,
        *,
        folder: Path,
        limits: QueryLimits | None = None,
        exports: Exports | None = None,
    ) -> None:
        self.limits = limits or QueryLimits()
        self._folder = folder
        self._exports = exports or Exports(
            store, most_bytes=self.limits.export_bytes, folder=folder
        )
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._lock = threading.Lock()  # of what follows
        self._waiting = 0
        self.under_way = 0  # questions that are being answered, or wait to be
        self._workers: set[Worker] = set()
        self._failure: str | None = None  # why no process starts
        self._closed = threading.Event()
        self._wanted = threading.Semaphore(self.limits.workers)
        self._keeper = threading.Thread(target=self._keep, name="queries", daemon=True)
        self._keeper.start()

    def __enter__(self) -> "QueryPool":
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def ask(
        self,
        sql: str,
        *,
        form: Form = Form.ARROW,
        max_rows: int = MAX_ROWS,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Answer one reading statement. `cancelled` is asked now and then: whether to give up.

        QueryRefused: it is not one, it fails, or is past its limits. TableNotFound. QueryTooLarge.
        TooManyQueries: ask again in a moment. StoreError.
        """
        began = time.monotonic()
        with self._counted():
            worker = self._take(cancelled)
            try:
                deadline = time.monotonic() + self.limits.seconds
                question = Question(sql, form, max_rows, deadline, cancelled, began)
                return question.put_to(worker, self._exports, self._folder)
            finally:
                self._give_back(worker)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self.under_way -= 1

    def _take(self, cancelled: Callable[[], bool]) -> Worker:
        with self._lock:
            if self._waiting >= self.limits.waiting:
                raise self._too_many()
            self._waiting += 1
        try:
            deadline = time.monotonic() + self.limits.patience_seconds
            while True:
                try:
                    worker = self._idle.get(timeout=_LOOK_SECONDS)
                except queue.Empty:
                    if cancelled():
                        raise Cancelled("the query was ended: the asker hung up") from None
                    if self._closed.is_set():
                        raise EngineError("the engine stops and answers no more queries") from None
                    if not self._workers and self._failure is None:
                        # The processes are still starting: no other query is in the way.
                        deadline = time.monotonic() + self.limits.patience_seconds
                    if time.monotonic() > deadline:
                        raise self._why_none() from None
                    continue
                if worker.is_alive():
                    return worker
                self._give_back(worker)  # it was killed by somebody else while it was idle
        finally:
            with self._lock:
                self._waiting -= 1

    def _why_none(self) -> EngineError | TooManyQueries:
        failure = self._failure
        return self._too_many() if failure is None else EngineError(failure)

    def _too_many(self) -> TooManyQueries:
        return TooManyQueries(
            f"the engine answers {counted(self.limits.workers, 'query', 'queries')} at once and "
            f"others wait already; ask again in a moment"
        )

    def _give_back(self, worker: Worker) -> None:
        if worker.is_alive() and not self._closed.is_set():
            self._idle.put(worker)
            return
        worker.kill()
        with self._lock:
            self._workers.discard(worker)
        self._wanted.release()

    def _keep(self) -> None:
        """Start processes that are wanted, and let go of files that no query had for a while."""
        while not self._closed.is_set():
            if not self._wanted.acquire(timeout=_TIDY_SECONDS):
                self._exports.tidy()
                continue
            if self._closed.is_set():
                return
            try:
                worker = Worker(self.limits, cancelled=self._closed.is_set)
            except (EngineError, OSError) as error:
                if self._closed.is_set():
                    return
                logger.warning("%s", error)
                self._failure = str(error)
                self._wanted.release()
                self._closed.wait(_RESTART_SECONDS)
                continue
            self._failure = None
            with self._lock:
                self._workers.add(worker)
            self._give_back(worker)

    def processes(self) -> list[int]:
        """Return the process ids of all processes there are."""
        with self._lock:
            return sorted(worker.pid for worker in self._workers)

    def close(self) -> None:
        """End all processes and what they are doing."""
        self._closed.set()
        self._wanted.release()
        self._keeper.join()
        with self._lock:
            for worker in self._workers:
                worker.end()  # who asks it hears of it, and cleans up
        while not self._idle.empty():
            self._give_back(self._idle.get())
        self._exports.close()
