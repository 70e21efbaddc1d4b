"""One engine per project: a lock that its process holds for life, and the address it leaves.

    .headrace/engine.lock    held with flock; its text says who holds it: {"pid", "started"}
    .headrace/engine.json    {"pid", "url", "token", "started"}, for the owner's eyes only
    .headrace/token          the owner's token, the same for every engine of the project

Promises:
- Of two engines one gets the lock; the other is told the first one's pid and start.
- The death of its holder, however sudden, frees the lock; the next holder clears up what was left.
- A child of the engine (Spark's Java) does not keep the lock when the engine dies.
"""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace.errors import EngineRunning

__all__ = [
    "Address",
    "Holder",
    "address_of_holder",
    "hold_engine_lock",
    "lock_holder",
    "owner_token",
    "publish_address",
    "read_address",
]

_LOCK = "engine.lock"
_ADDRESS = "engine.json"
_TOKEN_FILE = "token"  # noqa: S105 - its name, not a token
# Whoever asks who holds the lock takes it for an instant; an engine waits that long.
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class Holder:
    """Who holds the lock; pid 0 when its text cannot be read."""

    pid: int
    started: str


@dataclass(frozen=True)
class Address:
    """Address and token of the running engine."""

    pid: int
    url: str
    token: str
    started: str


def now_text() -> str:
    """Return the time as the files write it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@contextmanager
def hold_engine_lock(folder: Path) -> Iterator[Holder]:
    """Hold the lock of a project's runtime folder. EngineRunning: another process does."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, folder)
        holder = Holder(os.getpid(), now_text())
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
        # Only a dead engine leaves its address behind.
        (folder / _ADDRESS).unlink(missing_ok=True)
        yield holder
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            holder = _read_holder(descriptor)
            raise EngineRunning(
                f"{folder.parent}: an engine serves this project already (pid {holder.pid}, since "
                f"{holder.started}). Ask it with `headrace status`, or stop it: kill {holder.pid}"
            ) from error


def lock_holder(folder: Path) -> Holder | None:
    """Return who holds the lock, None when nobody does."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _read_holder(descriptor: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return Holder(0, "just now")  # it holds the lock and has not written yet


@contextmanager
def publish_address(folder: Path, url: str, holder: Holder, token: str) -> Iterator[None]:
    """Leave the address for the owner to read; it is taken away at the end. Hold the lock."""
    file = folder / _ADDRESS
    temporary = folder / f"{_ADDRESS}~{secrets.token_hex(4)}"
    address = Address(holder.pid, url, token, holder.started)
    # Private from its first moment, and whole when it gets its name.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as writer:
        json.dump(asdict(address), writer)
    temporary.rename(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def read_address(folder: Path) -> Address | None:
    """Return the address an engine left, None when there is none yet."""
    try:
        return Address(**json.loads((folder / _ADDRESS).read_bytes()))
    except FileNotFoundError:
        return None


def address_of_holder(folder: Path, holder: Holder) -> Address | None:
    """Return the address that the holder of the lock left, None when there is none yet.

    One that a dead engine left is not returned: its port may be another program's by now.
    """
    address = read_address(folder)
    if address is None or (address.pid, address.started) != (holder.pid, holder.started):
        return None
    return address


def owner_token(folder: Path) -> str:
    """Return the token of the project's owner; it is made once. Who holds the lock asks."""
    path = folder / _TOKEN_FILE
    try:
        found = path.read_text().strip()
    except FileNotFoundError:
        found = ""
    if not found:
        found = secrets.token_urlsafe(32)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(found)
            file.flush()
            os.fsync(descriptor)
    return found
