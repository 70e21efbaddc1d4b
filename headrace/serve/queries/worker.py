"""One process that answers queries, as the engine sees it: started, asked, killed.

Promises:
- A question is replied to, or the process is killed: at the limit of time, or when the asker hangs
  up. What it was doing ends with it, and the caller starts another.
- The process ends with this one, however this one ends.
"""

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import EngineError, QueryRefused
from headrace.serve.queries.limits import QueryLimits
from headrace.serve.queries.wire import receive, send
from headrace.store.base import PublicTable

__all__ = ["Cancelled", "Worker", "WorkerLost"]

logger = logging.getLogger("headrace.serve")

_START_SECONDS = 60.0
_SEND_SECONDS = 2.0
_END_SECONDS = 2.0  # that a process gets to end once it has hung up
_LOOK_SECONDS = 0.1  # between two looks whether the asker is still there
_TOLD_BYTES = 2_000  # of what a process that ended printed
# The process has its own copy of these alone: nothing of the engine's environment is for queries.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL")
_SET = {
    "TZ": "UTC",
    # Arrow's own pool reserves a gigabyte at once, which would count as used.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}


class Cancelled(QueryRefused):
    """The asker hung up."""


class WorkerLost(QueryRefused):
    """The process ended before it replied."""


class Worker:
    """A process that is ready for a question. EngineError: it does not start."""

    def __init__(
        self, limits: QueryLimits, *, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._limits = limits
        self.memory_bytes = limits.memory_bytes
        self._channel, theirs = socket.socketpair()
        # A process that is ready reads at once, and one that is not is not waited for.
        self._channel.settimeout(_SEND_SECONDS)
        self._incoming = select.poll()  # `select` has no place for more than 1,024 open files
        self._incoming.register(self._channel, select.POLLIN)
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        options = {
            "memory_bytes": limits.memory_bytes,
            "answer_bytes": limits.answer_bytes,
            "seconds": limits.seconds,
            "grace_seconds": limits.grace_seconds,
        }
        #: What the process knows as tables; None before the first question.
        self.knows: Sequence[PublicTable] | None = None
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "headrace.serve.queries.child"),
                    *(str(theirs.fileno()), json.dumps(options)),
                ],
                stdin=subprocess.PIPE,  # nothing is ever written; its end is the process's end
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=[theirs.fileno()],
                cwd="/",
                env={name: os.environ[name] for name in _KEPT if name in os.environ} | _SET,
                process_group=0,  # Ctrl-C is for the engine
            )
        self.pid = self._process.pid
        try:
            self._await(time.monotonic() + _START_SECONDS, cancelled)
        except QueryRefused as error:
            printed = self._told()
            self.kill()
            raise EngineError(
                f"a process that answers queries does not start: {error} {printed}"
            ) from error

    def is_alive(self) -> bool:
        """Whether the process can be asked."""
        return self._process.poll() is None

    def ask(
        self,
        question: dict[str, Any],
        files: Sequence[int] = (),
        *,
        deadline: float,
        cancelled: Callable[[], bool],
    ) -> dict[str, Any]:
        """Return the reply to a question. WorkerLost, Cancelled: the process is killed.

        QueryRefused: the time was up. `deadline` is on the monotonic clock.
        """
        left = max(deadline - time.monotonic(), 0.01)
        try:
            try:
                send(self._channel, {**question, "seconds": left}, files)
            except OSError as error:
                raise self._lost() from error
            # The process is ended by its own timer a moment before.
            reply = self._await(deadline + 2 * self._limits.grace_seconds, cancelled)
        except BaseException:
            self.kill()
            raise
        if "spent" in reply:
            self.kill()
        return reply

    def _await(self, deadline: float, cancelled: Callable[[], bool]) -> dict[str, Any]:
        try:
            while not self._incoming.poll(_LOOK_SECONDS * 1000):
                if cancelled():
                    raise Cancelled("the query was ended: the asker hung up")
                if time.monotonic() > deadline:
                    raise self._out_of_time()
            reply, _ = receive(self._channel)
        except (OSError, EOFError) as error:
            raise self._lost() from error
        return reply

    def _lost(self) -> QueryRefused:
        """Say why the process ended."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code == -signal.SIGALRM:
            return self._out_of_time()
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        logger.warning("a process that answers queries ended (%s) %s", ended, self._told())
        return WorkerLost(
            f"the process that answered the query was ended ({ended}), perhaps because it needed "
            f"more memory than there is; ask again, or for less at once"
        )

    def _out_of_time(self) -> QueryRefused:
        return QueryRefused(
            f"the query took more than {self._limits.seconds:g} seconds and was ended; ask for "
            f"less at once"
        )

    def _told(self) -> str:
        """Return the end of what the process printed."""
        self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, self._printed.tell() - _TOLD_BYTES))
        return self._printed.read().decode(errors="replace").strip()

    def end(self) -> None:
        """Let the process end; who is asking it is told."""
        self._process.kill()

    def kill(self) -> None:
        """End the process and forget it; no thread may be asking it."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._channel.close()
        self._printed.close()
