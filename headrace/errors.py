"""Every error that Headrace raises on purpose, as one tree.

HeadraceError
├── UsageError              the call itself is wrong
│   └── KeyReused           an Idempotency-Key comes again with another request
├── DefinitionError         definitions refused; carries every Problem, not only the first
├── DefinitionUnreadable    a kept definition is of a later release, or damaged
├── LogError                the log cannot do what was asked
│   ├── TopicNotFound
│   ├── TopicExists
│   ├── InvalidTopic
│   ├── RecordTooLarge
│   ├── BufferFull          a sender's buffer stayed full: the log is slower than its records come
│   ├── PositionLost        the next record to read is gone
│   ├── LogDamaged          a checksum fails before the acknowledged end
│   ├── ProducerFenced      a newer producer took over this producer id
│   ├── GroupNotFound
│   ├── GroupActive         a consumer group has members; it cannot be reset or deleted
│   ├── MemberFenced        another member of the group took over
│   └── AccessDenied        wrong credentials, or no right to do this; retrying does not help
├── StoreError              the store cannot do what was asked
│   ├── StoreBusy           another process holds the store
│   ├── EngineFenced        a newer engine took over: this one may not commit
│   ├── MergeFailed         one view's delta does not merge; names the view
│   ├── ViewNotFound        readers see no view of that name
│   ├── QueryRefused        not a reading statement, or past its limits
│   │   ├── TableNotFound   it names a table that is not there
│   │   ├── QueryTooLarge   it reads more than is handed out for one query
│   │   └── TooManyQueries  others are being answered
│   ├── TokenRefused        a resume token is none of this view's
│   │   └── TokenTooOld     the changes behind it are not kept any more
│   └── StateDamaged        a file of operator state is missing or damaged; names it
├── EngineError             the engine cannot start or go on
│   ├── EngineRunning       another engine serves this project
│   ├── EngineBusy          it answers as many requests as it takes; ask again in a moment
│   ├── TooSlow             who follows takes less than comes; go on after the last token
│   ├── JavaMissing         no Java runtime for Spark
│   ├── ProbeMissing        this Spark cannot tell which records an expression fails on
│   └── ViewFailed          a view's work fails for a reason that no single record explains
├── DiskFull                no space left; nothing acknowledged or committed is lost
├── AuditFailed             the promise is broken; carries the differences
├── AuditIncomplete         nothing differs, but not all of the log was read; says what was not
└── Unreachable             log, store or engine out of reach

Every message has three parts: what happened, where, what to do. `exit_code` is what the command
line returns: 1 the answer is no, 2 wrong call, 3 could not find out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "AccessDenied",
    "AuditFailed",
    "AuditIncomplete",
    "BufferFull",
    "DefinitionError",
    "DefinitionUnreadable",
    "DiskFull",
    "EngineBusy",
    "EngineError",
    "EngineFenced",
    "EngineRunning",
    "GroupActive",
    "GroupNotFound",
    "HeadraceError",
    "InvalidTopic",
    "JavaMissing",
    "KeyReused",
    "Location",
    "LogDamaged",
    "LogError",
    "MemberFenced",
    "MergeFailed",
    "PositionLost",
    "ProbeMissing",
    "Problem",
    "ProducerFenced",
    "QueryRefused",
    "QueryTooLarge",
    "RecordTooLarge",
    "StateDamaged",
    "StoreBusy",
    "StoreError",
    "TableNotFound",
    "TokenRefused",
    "TokenTooOld",
    "TooManyQueries",
    "TooSlow",
    "TopicExists",
    "TopicNotFound",
    "Unreachable",
    "UsageError",
    "ViewFailed",
    "ViewNotFound",
]


@dataclass(frozen=True, order=True)
class Location:
    """A place in a definition; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a definition: where, what, and what to write instead."""

    location: Location
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


class HeadraceError(Exception):
    """The root: catch this to catch whatever Headrace raises on purpose."""

    exit_code: ClassVar[int] = 3


class UsageError(HeadraceError):
    """The call itself is wrong."""

    exit_code = 2


class KeyReused(UsageError):
    """An Idempotency-Key comes again with another request."""


class DefinitionError(HeadraceError):
    """Definitions were refused. `problems` holds all of them, in file order."""

    exit_code = 1

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class DefinitionUnreadable(HeadraceError):
    """A definition that was kept cannot be read: a later release wrote it, or it is damaged."""


class LogError(HeadraceError):
    """The log cannot do what was asked."""


class TopicNotFound(LogError):
    """No topic of that name."""

    exit_code = 2


class TopicExists(LogError):
    """A topic of that name is there already."""

    exit_code = 2


class InvalidTopic(LogError):
    """A topic's name or number of partitions is not allowed."""

    exit_code = 2


class RecordTooLarge(LogError):
    """A record is over the size limit; nothing of its batch was appended."""

    exit_code = 2


class BufferFull(LogError):
    """A sender had no room for a record for as long as it may wait; the record was not sent."""


class PositionLost(LogError):
    """The next record to read is no longer, or not yet, in the log."""


class LogDamaged(LogError):
    """A checksum fails before the acknowledged end: names file and offset."""


class ProducerFenced(LogError):
    """A producer with the same id and a newer epoch took over."""


class GroupNotFound(LogError):
    """There is no consumer group of this name."""

    exit_code = 2


class GroupActive(LogError):
    """A consumer group has members: it cannot be reset or deleted while they read."""

    exit_code = 2


class MemberFenced(LogError):
    """Another member of the group took over; nothing of this commit was stored."""


class AccessDenied(LogError):
    """The log refuses who asks: wrong credentials, or no right to do this."""


class StoreError(HeadraceError):
    """The store cannot do what was asked."""


class StoreBusy(StoreError):
    """Another process holds the store."""


class EngineFenced(StoreError):
    """A newer engine took over, so this one may not commit."""


class MergeFailed(StoreError):
    """One view's delta does not merge into its table. `view` names it."""

    def __init__(self, message: str, *, view: str) -> None:
        self.view = view
        super().__init__(message)


class ViewNotFound(StoreError):
    """Readers see no view of that name, or not yet."""

    exit_code = 2


class QueryRefused(StoreError):
    """Not a reading statement, not a valid one, or past its limits."""

    exit_code = 2


class TableNotFound(QueryRefused):
    """A query names a table that is not there. `table` is the name as the query has it."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(f"there is no table {table}; `SHOW TABLES` lists what there is")


class QueryTooLarge(QueryRefused):
    """A query reads more columns and rows than are handed out for one query."""


class TooManyQueries(QueryRefused):
    """So many queries are being answered that this one was not begun."""

    exit_code = 3


class TokenRefused(StoreError):
    """A resume token is not one, or of another store, or of a view that is gone."""


class TokenTooOld(TokenRefused):
    """The changes that followed a resume token are not kept any more."""


class StateDamaged(StoreError):
    """A file of operator state is missing, damaged, or of another store: names the file."""


class EngineError(HeadraceError):
    """The engine cannot start or go on."""


class EngineRunning(EngineError):
    """Another engine serves this project."""


class EngineBusy(EngineError):
    """The engine answers as many requests as it takes; ask again in a moment."""


class TooSlow(EngineError):
    """Who follows a view or a topic takes less than comes; go on after the last token."""


class JavaMissing(EngineError):
    """Spark needs a Java runtime and none was found."""


class ProbeMissing(EngineError):
    """The release of Spark has no expression that says whether another one fails."""


class ViewFailed(EngineError):
    """A view's work fails for a reason that no single record explains. `view` names it."""

    def __init__(self, message: str, *, view: str) -> None:
        self.view = view
        super().__init__(message)


class DiskFull(HeadraceError):
    """No space left on the device; nothing acknowledged or committed is lost."""


class AuditFailed(HeadraceError):
    """The tables, sets or counters are not what the log says. `differences` lists them."""

    exit_code = 1

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__("\n".join(self.differences))


class AuditIncomplete(HeadraceError):
    """What was read is as the log says, but not all was read. `unread` says what was not."""

    def __init__(self, unread: Sequence[str]) -> None:
        self.unread = tuple(unread)
        super().__init__("\n".join(self.unread))


class Unreachable(HeadraceError):
    """Log, store or engine could not be reached."""
