"""Where members of groups and consumers of queues meet: one SQLite file, `<log>/~groups.sqlite`.

Version 1 (`PRAGMA user_version`); times are milliseconds of the machine's monotonic clock:

    groups      name, version: another number after every change to the two tables that follow, and
                whenever the row is made anew,
                topics: {topic: [id, partitions]} as the targets were worked out for
    members     id, group_name, instance, topics: a JSON list, session_timeout_ms,
                seen_ms: the last sign of life
    places      group_name, topic, number, owner: who reads this partition, target: who shall
    queues      id, name, topic, topic_id, max_deliveries, lock_ms, dead_letters, start
    consumers   id, queue_id, seen_ms
    cursors     queue_id, number, next_offset: never handed out, dead_sequence: the last one given,
                open_records: how many rows of the partition the next table has
    deliveries  queue_id, number, offset, deliveries: how often it was handed out, owner: to whom,
                taken_ms: when; RELEASED_MS when it is nobody's, null when it is dead,
                dead_sequence, reason: what it goes to the dead-letter topic with

Promises:
- A step is one transaction: all of it is there or nothing, for every thread and process, and after
  a power loss. Steps come one after the other, each reads the clock after those before it.
- Errors of SQLite are translated: DiskFull, LogDamaged or LogError, never passed on.
- A time from before a restart of the machine lies in the future or is older than it looks, so that
  who was alive then counts as dead now, at the latest when its time is over.
Not here: what groups have committed. That is in the log itself (offsets.py), so that losing this
file costs a rebalance, and queues their place.
"""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.errors import DiskFull, HeadraceError, LogDamaged, LogError, UsageError
from headrace.log.embedded.files import disk_errors, locked, write_new_file

__all__ = ["Coordinator", "now_ms"]

FILE = "~groups.sqlite"  # "~" is in no topic's name
LOCK = "~groups.lock"
OPENING = "~groups.opening"
VERSION = 1
# Longer than any commit takes; somebody who holds the file for longer has stopped.
BUSY_TIMEOUT_S = 30.0

_SCHEMA = """
CREATE TABLE groups (name TEXT PRIMARY KEY, version INTEGER NOT NULL, topics TEXT NOT NULL)
WITHOUT ROWID;
CREATE TABLE members (
    id TEXT PRIMARY KEY, group_name TEXT NOT NULL, instance TEXT, topics TEXT NOT NULL,
    session_timeout_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX members_of_group ON members (group_name);
CREATE TABLE places (
    group_name TEXT NOT NULL, topic TEXT NOT NULL, number INTEGER NOT NULL,
    owner TEXT, target TEXT, PRIMARY KEY (group_name, topic, number)
) WITHOUT ROWID;
CREATE TABLE queues (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, topic TEXT NOT NULL, topic_id TEXT NOT NULL,
    max_deliveries INTEGER NOT NULL, lock_ms INTEGER NOT NULL, dead_letters TEXT NOT NULL,
    start TEXT NOT NULL, UNIQUE (name, topic)
);
CREATE TABLE consumers (
    id TEXT PRIMARY KEY, queue_id INTEGER NOT NULL, seen_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE cursors (
    queue_id INTEGER NOT NULL, number INTEGER NOT NULL, next_offset INTEGER NOT NULL,
    dead_sequence INTEGER NOT NULL, open_records INTEGER NOT NULL,
    PRIMARY KEY (queue_id, number)
) WITHOUT ROWID;
CREATE TABLE deliveries (
    queue_id INTEGER NOT NULL, number INTEGER NOT NULL, offset INTEGER NOT NULL,
    deliveries INTEGER NOT NULL, owner TEXT, taken_ms INTEGER,
    dead_sequence INTEGER, reason TEXT, PRIMARY KEY (queue_id, number, offset)
) WITHOUT ROWID;
CREATE INDEX deliveries_by_time ON deliveries (queue_id, taken_ms);
CREATE INDEX deliveries_dead ON deliveries (queue_id, dead_sequence)
WHERE dead_sequence IS NOT NULL;
"""


def now_ms() -> int:
    """Return the time that all processes of this machine share. Read it within a step."""
    return time.monotonic_ns() // 1_000_000


class Coordinator:
    """The file, opened when it is first needed, and anew after a fork. Safe for several threads.

    Threads wait for a mutex, processes for a lock of the system, and both are woken when it is
    their turn. SQLite alone would let them sleep and look again: of four processes that take
    records from a queue as fast as they can, one then waits up to 2 s, and 0.3 s with the lock.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self._folder = path
        self._file = path / FILE
        self._sync = sync
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        _all.add(self)

    @contextmanager
    def step(self) -> Iterator[sqlite3.Connection]:
        """Do what is within as one transaction, alone; an exception takes it back."""
        with self._mutex, self._translated():
            connection = self._open()
            with locked(self._folder / LOCK):
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # it has rolled back by itself
                        connection.execute("ROLLBACK")
                    raise

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """Read what is within as of one moment, without waiting for others."""
        with self._mutex, self._translated():
            connection = self._open()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex, self._translated():
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def after_fork(self) -> None:
        """Begin anew in a child process: neither locks nor connections may be taken along."""
        self._mutex = threading.Lock()
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise UsageError(f"{self._folder}: this log is closed; open it anew.")
        if self._connection is None:
            # Two who make the file, or turn it to WAL, at once would be refused, not made to wait.
            with locked(self._folder / OPENING):
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        with disk_errors(self._file):
            if not self._file.exists():
                # Made under another name: closing a file that SQLite has open in this process
                # would release its locks. SQLite gives its other files the mode of this one.
                write_new_file(self._file, b"", sync=self._sync)
        connection = sqlite3.connect(
            self._file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'OFF'}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            raise LogError(
                f"{self._file}: this file has format version {version}, this Headrace reads "
                f"version {VERSION}. Use the Headrace that made it, or a newer one."
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translate(self._file, error) from error


def translate(file: Path, error: sqlite3.Error) -> HeadraceError:
    """Return our error for one of SQLite's."""
    # The lower byte is the kind, those above it say more.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFull(
            f"{file}: no space left ({error}). What was committed or acknowledged is safe; free "
            f"some space, then go on."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogError(
            f"{file}: another process holds it for more than {BUSY_TIMEOUT_S:g} s ({error}). "
            f"Nothing was changed; find that process (`fuser {file}`), then try again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LogDamaged(
            f"{file}: the file of groups and queues is damaged ({error}). Stop all members and "
            f"consumers and move it away with its -wal and -shm: groups go on where they had "
            f"committed, queues begin anew and hand out again what was done."
        )
    return LogError(
        f"{file}: SQLite refused ({error}). What was committed or acknowledged is safe; look at "
        f"the disk and at the folder's permissions, then try again."
    )


_all: weakref.WeakSet[Coordinator] = weakref.WeakSet()
# Connections that a child got with the fork. Closing them there could spoil the parent's.
_inherited: list[sqlite3.Connection] = []


def _begin_anew_in_child() -> None:
    for coordinator in list(_all):
        coordinator.after_fork()


os.register_at_fork(after_in_child=_begin_anew_in_child)
