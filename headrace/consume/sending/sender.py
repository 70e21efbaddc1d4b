"""Sending records one by one: collected into batches, appended by one thread, with back-pressure.

    with Sender(log) as sender:
        future = sender.send("clicks", value, key=key)
    future.result()  # Sent(partition, offset), or raises why not

Promises:
- Records of a partition are appended in the order of their `send` calls, also from several threads
  where one call returned before the other began.
- A batch is what was sent to a topic, or to one partition of it, within `linger_ms` of its first
  record, or until it has `batch_bytes`; sooner when somebody waits for room, `flush` or `close`. It
  is one append: its records are stored, or fail, together (with `acks=1` on several partitions: by
  partition). One that fails takes no other along, and is not sent again.
- At most `buffer_bytes` wait (one record at least); `send` then waits for room, for `block_ms` at
  the most, and raises BufferFull.
- A record without a key, for a topic of which `keys` can read them, has the key that stands in its
  value; `headrace.project.producing.open_sender` reads the one that the topic's streams declare.
- With `acks="all"` or 1 a future is done when `append` with these `acks` returned or raised. With 0
  it is done at hand-over and tells nothing; failures are counted, and logged now and then.
- The thread ends when there was nothing to do for IDLE_S, and comes again. It never keeps a process
  from ending: what was handed over but not yet acknowledged is lost if nobody closes the sender,
  and that is logged.

Bytes are counted with RECORD_OVERHEAD_BYTES for each record. An offset is None where it does not
follow from what the append returned (outgoing.py).
"""

import atexit
import logging
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Literal, NamedTuple, Self
from weakref import WeakSet

from headrace.consume.sending.buffer import Buffer
from headrace.consume.sending.outgoing import OutgoingBatch, ReadKeys, Sent, make_record
from headrace.errors import HeadraceError, UsageError
from headrace.log.base import Log, Range
from headrace.log.records import MAX_APPEND_BYTES, Bytes, Headers
from headrace.wording import counted

__all__ = ["Sender", "SenderStatus", "Sent"]

IDLE_S = 1.0
COMPLAIN_EVERY_S = 10.0

logger = logging.getLogger("headrace.log")


class SenderStatus(NamedTuple):
    """What a sender has in hand, and what it did so far; bytes are as counted."""

    buffered_records: int
    buffered_bytes: int
    buffer_bytes: int  # the most
    sent_records: int
    failed_records: int


class Sender:
    """Sends records to a log, which it does not close. Safe for several threads.

    Not for forked children: what is buffered here is this process's to send.
    """

    _pid = -1  # until the arguments are found to be right

    def __init__(
        self,
        log: Log,
        *,
        acks: Literal[0, 1, "all"] = "all",
        linger_ms: float = 5,
        batch_bytes: int = 1 << 20,
        buffer_bytes: int = 32 << 20,
        block_ms: int = 60_000,
        keys: Mapping[str, ReadKeys] | None = None,
    ) -> None:
        _check_settings(acks, linger_ms, batch_bytes, buffer_bytes, block_ms)
        self._log = log
        self._keys = dict(keys or {})
        self._acks: Literal[0, 1, "all"] = acks
        self._block_s = block_ms / 1000
        self._buffer_bytes = buffer_bytes
        self._buffer = Buffer(
            linger_s=linger_ms / 1000, batch_bytes=batch_bytes, max_bytes=buffer_bytes
        )
        self._sent_records = self._failed_records = self._failed_unsaid = 0
        self._complained_s = -COMPLAIN_EVERY_S
        self._handed_over: Future[Sent] = Future()
        self._handed_over.set_result(Sent())
        self._closed = False
        self._pid = os.getpid()
        _senders.add(self)

    def send(
        self,
        topic: str,
        value: Bytes,
        *,
        key: Bytes = None,
        headers: Headers = None,
        partition: int | None = None,
    ) -> Future[Sent]:
        """Take a record and return a future of where it will be; it cannot be cancelled.

        At once: RecordTooLarge, UsageError. After `block_ms`: BufferFull. In the future: whatever
        the append raised, such as TopicNotFound, DiskFull or Unreachable.
        """
        self._check_process()
        future: Future[Sent] | None = None
        if self._acks != 0:
            future = Future()
            future.set_running_or_notify_cancel()
        record, size = make_record(topic, key, value, headers, future)
        # In the callback of a future nobody else could make room.
        block_s = 0 if self._is_worker() else self._block_s
        self._buffer.put(topic, partition, record, size, block_s=block_s)
        self._see_to_worker()
        return future or self._handed_over

    def flush(self, timeout_s: float | None = None) -> None:
        """Return once all that was sent before is appended, or has failed.

        Unreachable: it is not, after `timeout_s`; nothing is dropped, and the thread goes on.
        """
        self._check_process()
        if self._is_worker():
            raise UsageError("`flush` in the callback of a future waits for itself; call it later.")
        if self._buffer.waiting().records:
            self._see_to_worker()
            self._buffer.drain(timeout_s)

    def close(self) -> None:
        """Take no more, and return once all that was sent is appended, or has failed.

        Interrupted, it leaves the rest to the thread; call it again to wait for that.
        """
        if self._pid != os.getpid():
            return
        self._closed = True
        self._buffer.close()
        if self._is_worker():
            raise UsageError("`close` in the callback of a future waits for itself; call it later.")
        if self._buffer.waiting().records:
            self._see_to_worker()
            self._buffer.drain(None)
        self._buffer.wait_for_end()
        self._complain()

    def status(self) -> SenderStatus:
        """Return figures to watch: a buffer that stays full says that the log is too slow."""
        records, counted_bytes = self._buffer.waiting()
        return SenderStatus(
            records, counted_bytes, self._buffer_bytes, self._sent_records, self._failed_records
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._warn_if_open()

    def _warn_if_open(self) -> None:
        """Say that nobody closed this sender, and what was lost with it."""
        if self._pid != os.getpid() or self._closed:
            return
        self._closed = True
        # The thread refers to us until it has sent everything, so this is zero unless the process
        # ends.
        lost = self._buffer.waiting().records
        if lost:
            many = counted(lost, "record")
            logger.error("lost %s handed over to a Sender that nobody closed", many)
        warnings.warn(
            "A Sender was not closed: what it has buffered when the process ends is lost. Use "
            "`with Sender(log) as sender:`, or call `close`.",
            ResourceWarning,
            source=self,
            stacklevel=1,
        )

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise UsageError(
                f"This sender belongs to process {self._pid}, and this one was forked from it; "
                f"make a sender here."
            )

    def _is_worker(self) -> bool:
        return self._buffer.taker == threading.get_ident()

    def _see_to_worker(self) -> None:
        # The thread says itself that it is there. So an interrupt here leaves neither none nor
        # two of them: one too many finds that it is, and ends.
        if self._buffer.taker is None:
            threading.Thread(target=self._work, name="headrace-sender", daemon=True).start()

    def _work(self) -> None:
        if not self._buffer.begin_taking():
            return
        while (batch := self._buffer.take(IDLE_S)) is not None:
            self._append(batch)

    def _append(self, batch: OutgoingBatch) -> None:
        failure: BaseException | None = None
        places: Sequence[Sent] = ()
        try:
            if batch.topic in self._keys:
                for record, refusal in batch.read_keys(self._keys[batch.topic]):
                    self._failed_records += 1
                    self._failed_unsaid += self._acks == 0
                    if record.future is not None:
                        _settle(record.future, refusal)
            if batch.records:
                table = batch.table()
                acks = self._acks or 1
                done = self._log.append(batch.topic, table, partition=batch.partition, acks=acks)
                places = self._where(batch, done.ranges)
        except BaseException as error:  # noqa: BLE001 - whoever waits for these must hear of it
            failure = error
        if failure is None:
            self._sent_records += len(batch.records)
        else:
            self._failed_records += len(batch.records)
        self._buffer.release(batch)
        if self._acks != 0:
            _complete(batch, places, failure)
        elif failure is not None:
            self._failed_unsaid += len(batch.records)
            if time.monotonic() >= self._complained_s + COMPLAIN_EVERY_S:
                self._complain(failure)

    def _where(self, batch: OutgoingBatch, ranges: Sequence[Range]) -> Sequence[Sent]:
        if self._acks == 0:
            return ()
        try:
            return batch.where(ranges, lambda: self._log.topic(batch.topic).partitions)
        except HeadraceError:  # the records are there all the same
            return [Sent()] * len(batch.records)

    def _complain(self, failure: BaseException | None = None) -> None:
        if self._failed_unsaid:
            logger.error(
                "lost %s sent with acks=0 that could not be appended, %d so far%s",
                counted(self._failed_unsaid, "record"),
                self._failed_records,
                "" if failure is None else f": {failure}",
            )
            self._failed_unsaid, self._complained_s = 0, time.monotonic()


_senders: WeakSet[Sender] = WeakSet()


@atexit.register
def _warn_of_open_senders() -> None:
    for sender in list(_senders):
        sender._warn_if_open()


def _complete(batch: OutgoingBatch, places: Sequence[Sent], failure: BaseException | None) -> None:
    for number, (_, _, _, future) in enumerate(batch.records):
        assert future is not None
        _settle(future, places[number] if failure is None else failure)


def _settle(future: Future[Sent], outcome: Sent | BaseException) -> None:
    try:
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
    except BaseException:  # a callback that ends threads must not end this one
        logger.exception("a callback of a future that a Sender gave raised")


def _check_settings(
    acks: object, linger_ms: float, batch_bytes: int, buffer_bytes: int, block_ms: int
) -> None:
    if acks not in (0, 1, "all"):
        raise UsageError(f"Sender: acks cannot be {acks!r}. Use 0, 1 or 'all'.")
    for name, value, least, most in (
        ("linger_ms", linger_ms, 0, threading.TIMEOUT_MAX),
        ("batch_bytes", batch_bytes, 1, MAX_APPEND_BYTES // 2),
        ("buffer_bytes", buffer_bytes, 1, None),
        ("block_ms", block_ms, 0, threading.TIMEOUT_MAX),
    ):
        if value < least or (most is not None and value > most):
            range_text = f"{least} or more" if most is None else f"{least} to {most:.0f}"
            raise UsageError(f"Sender: {name} cannot be {value}. Use {range_text}.")
