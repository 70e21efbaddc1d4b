"""How a view's rows change, and who reads that: the words that ledger, store and readers share.

A view has changes while it is *followed*: by sinks, by readers with a lease, or always, where its
definition says so. Changes are rows with a sign. -1: the row leaves; +1: it comes; 0: it is closed
and otherwise the same. A row that is updated leaves as it was and comes as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from headrace.errors import TokenRefused
from headrace.ledger.entries import StreamPartition
from headrace.plan.tables import Table
from headrace.schema.relations import Named, Relation

__all__ = [
    "ChangeLimits",
    "Changed",
    "Followers",
    "Page",
    "SinkEntry",
    "SinkState",
    "Token",
    "relation_of",
]

_TOKEN = re.compile(r"([0-9a-f]{1,32})\.([0-9A-Za-z]{1,64})\.([0-9]{1,18})(?:\+([0-9]{1,18}))?")

#: The views that are followed and that a commit changed, by name.
Changed = frozenset[str]


def relation_of(table: Table) -> Relation:
    """Return what the rows of a table are to its readers."""
    return Relation(
        tuple(Named(part.name, part.type) for part in table.key),
        tuple(Named(output.name, output.type) for output in table.outputs),
    )


class Token(NamedTuple):
    """Up to where a reader has the changes of a view: all of a commit or, with `rows`, so many."""

    store_id: str
    version: str
    commit: int
    rows: int = 0

    @property
    def whole(self) -> int:
        """The last commit that the reader has all changes of."""
        return self.commit - 1 if self.rows else self.commit

    def __str__(self) -> str:
        rows = f"+{self.rows}" if self.rows else ""
        return f"{self.store_id}.{self.version}.{self.commit}{rows}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Return the token that a text is. TokenRefused: it is none."""
        found = _TOKEN.fullmatch(text)
        if found is None:
            raise TokenRefused(
                f"{text[:60]!r} is not a resume token; leave it out to begin with all rows"
            )
        store_id, version, commit, rows = found.groups()
        return cls(store_id, version, int(commit), int(rows or 0))


@dataclass(frozen=True)
class Page:
    """Changes of a view in their order, and the token behind them.

    `rows` has the columns `_commit`, `_sign`, `_closed`, `_key` (a struct) and those of the view.
    With `reset` the reader must forget what it has and begin with all rows: a version with another
    key or other columns took over. `relation` is what the rows are, or with `reset` what rows are
    now. `position` and `watermark_us` (NEVER is -infinity) are those of
    the view at the commit of the token, where `at_head` says that no later change is there.
    """

    rows: pa.Table
    token: Token
    at_head: bool
    relation: Relation
    position: Mapping[StreamPartition, int] = field(default_factory=dict)
    watermark_us: int | None = None
    reset: bool = False


@dataclass(frozen=True)
class SinkEntry:
    """A sink as the ledger knows it. `emit` is its view's: changes, every or final.

    `key` names the columns of the view that are the key of its records; empty: the view's key.
    """

    name: str
    view: str
    topic: str
    mode: str
    emit: str = "changes"
    key: tuple[str, ...] = ()

    def has_key(self, relation: Relation) -> bool:
        """Whether rows of a relation have the columns that it is keyed by."""
        return set(self.key) <= {each.name for each in relation.columns}


@dataclass(frozen=True)
class SinkState:
    """How far a sink is: it has all changes up to the commit `told`.

    `until` is the commit that it is on its way to, where several are published as one. `first` is
    the commit whose private rows it gets before everything else. While `paused` it is told nothing,
    and what it is owed waits.
    """

    sink: SinkEntry
    told: int
    until: int | None = None
    first: int | None = None
    version: str = ""  # of its view, that readers saw there; none before the first
    paused: bool = False


@dataclass(frozen=True)
class ChangeLimits:
    """How many changes of a view are kept for readers: the lease of one further behind ends."""

    commits: int = 10_000
    bytes: int = 256 << 20


@dataclass(frozen=True)
class Followers:
    """All who follow views besides readers with a lease: sinks, and views that always keep."""

    sinks: tuple[SinkEntry, ...] = ()
    always: frozenset[str] = frozenset()
    limits: ChangeLimits = ChangeLimits()
