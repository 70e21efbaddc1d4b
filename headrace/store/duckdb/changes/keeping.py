"""The changes of a store: made in its commits, kept for who follows, dropped when all have them.

What a commit has to know of followers is in memory, so that a view that nobody follows costs
nothing; so is how far readers with a lease are, which no transaction is worth.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headrace.errors import TokenTooOld
from headrace.ledger.entries import Commit, Owner
from headrace.ledger.following import (
    ChangeLimits,
    Followers,
    SinkState,
    Token,
    relation_of,
)
from headrace.plan.tables import Table
from headrace.store.duckdb.changes.compacting import compact
from headrace.store.duckdb.changes.following import (
    FollowedView,
    add_lease,
    drop_lease,
    drop_told,
    head_of,
    prune,
    read_followed,
    read_leases,
    set_followers,
)
from headrace.store.duckdb.changes.layout import first_table
from headrace.store.duckdb.changes.making import Carried, ChangeMaker
from headrace.store.duckdb.changes.recent import RecentChanges
from headrace.store.duckdb.changes.shown import read_shown
from headrace.store.duckdb.changes.sizes import check_sizes, row_bytes
from headrace.store.duckdb.file import DuckDBFile
from headrace.time.clocks import NEVER

__all__ = ["ChangeKeeping", "Making"]

# Changes of a view with `emit = 'every ...'` are compacted when so many were added since the last
# time, besides as many as were left then.
COMPACT_ROWS = 100_000
# Between two looks at what readers with a lease have; sinks are looked at when they are told.
_PRUNE_COMMITS = 16
# The progress of sinks is written to the ledger once for so many commits.
_TOLD_COMMITS = 16
# Where a turn touches few of many rows, so many commits pass before that is looked into again.
_CROWDED_COMMITS = 32
#: A view, and a version of it.
Version = tuple[str, str]

_NO_LIMITS = ChangeLimits(commits=1 << 62, bytes=1 << 62)


@dataclass
class Making:
    """The changes of one commit: what makes them, which views changed, what the next begins with.

    `forgotten` is how often everything had been forgotten when it began; `made` has the changes by
    the name of their table, as `RecentChanges` notes them.
    """

    forgotten: int
    makers: list[ChangeMaker] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    carried: dict[Version, Carried] = field(default_factory=dict)
    made: dict[str, pa.Table | None] = field(default_factory=dict)


class ChangeKeeping:
    """All but `renew` is within a transaction of the caller, who says when it was rolled back."""

    def __init__(self, file: DuckDBFile) -> None:
        self._file = file
        self._limits = _NO_LIMITS  # until the engine says which there are
        self._followed: dict[str, FollowedView] | None = None
        self._leases: dict[str, tuple[str, int]] | None = None
        self._watermarks: dict[Owner, int] | None = None  # W of versions, as the ledger has it
        self._carried: dict[Version, Carried] = {}  # images that the next commit may begin with
        self._forgotten = 0  # how often
        self.recent = RecentChanges()
        self._mutex = threading.Lock()  # of these four: units commit in threads of their own
        self._added: dict[str, int] = {}  # changes since a view's were made fewer
        self._unpruned: dict[str, int] = {}  # commits since a view was pruned
        self._crowded: dict[str, int] = {}  # commits until it is tried to read what is near
        self._ended: set[str] = set()  # leases that end with the transaction under way
        self._unwritten: Mapping[str, int] = {}  # by topic: see `defer_told`; replaced, not changed

    def forget(self) -> None:
        """Read anew who follows, and W of versions: they changed."""
        self._followed = None
        with self._mutex:
            self._watermarks = None
            self._carried = {}
            self._forgotten += 1
            self.recent.forget()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let followers change within; what is in memory of them is read anew afterwards."""
        with self.safe():
            yield
        self.forget()

    @contextmanager
    def safe(self) -> Iterator[None]:
        """Forget what is in memory if the transaction within is rolled back."""
        try:
            yield
        except BaseException:
            self._ended.clear()
            self._leases = None  # the ledger knows of earlier places, which is safe
            self.forget()
            raise
        # Only now: a transaction that lacks memory is tried again. Another thread may begin one.
        ended, self._ended = self._ended, set()
        for lease in ended:
            self.leases.pop(lease, None)

    @property
    def followed(self) -> Mapping[str, FollowedView]:
        """The views that are followed."""
        found = self._followed  # another thread may forget it meanwhile
        if found is None:
            found = self._followed = read_followed(self._file.rows)
        return found

    @property
    def leases(self) -> dict[str, tuple[str, int]]:
        """The view and the last commit of every reader with a lease."""
        found = self._leases
        if found is None:
            found = self._leases = read_leases(self._file.rows)
        return found

    def begin(self, commit: Commit, number: int) -> "Making":
        """Return what makes the changes of a commit, after a look at what it touches."""
        self._ended.clear()
        making = Making(self._forgotten)
        with self._mutex:  # taken out: they do not hold any more when this is committed
            carried = {table: self._carried.pop(_version(table), None) for table in commit.deltas}
        tables = [table for table in commit.deltas if not table.part and self._is_followed(table)]
        if not tables:
            return making
        known = self._known_watermarks()
        for table in tables:
            owner = Owner("view", table.view, table.version)
            before_us = known.get(owner, NEVER)
            after_us = commit.watermarks.get(owner, before_us)
            into = self.followed[table.view].changes
            watermarks = before_us, after_us
            maker = ChangeMaker(self._file, table, into, watermarks, number, carried[table])
            maker.look(
                commit.deltas[table],
                may_be_near=self._may_be_near(table.view),
                truncates=commit.truncates.get(table, {}),
            )
            if maker.is_crowded:
                self._crowded[table.view] = _CROWDED_COMMITS
            making.makers.append(maker)
        return making

    def _may_be_near(self, view: str) -> bool:
        self._crowded[view] = self._crowded.get(view, 0) - 1
        return self._crowded[view] < 0

    def _known_watermarks(self) -> Mapping[Owner, int]:
        """Return W of every version that has one, before the transaction under way."""
        found = self._watermarks
        if found is None:
            known = "SELECT view, version, watermark_us FROM headrace.view_watermarks"
            rows = self._file.rows(known)
            found = {Owner("view", view, version): us for view, version, us in rows}
            self._watermarks = found
        return found

    def committed(self, commit: Commit, number: int, making: "Making") -> None:
        """Note what a commit left, so that the next one, and readers, need not read it."""
        with self._mutex:
            if making.forgotten != self._forgotten:
                self._watermarks = None
                return
            if self._watermarks is not None:
                self._watermarks = {**self._watermarks, **commit.watermarks}
            self._carried |= making.carried
            self.recent.note(number, making.made)

    def _is_followed(self, table: Table) -> bool:
        found = self.followed.get(table.view)
        return found is not None and found.version == table.version

    def finish(self, making: "Making") -> None:
        """Write the changes of a turn. MergeFailed."""
        for maker in making.makers:
            made = maker.finish()
            if maker.carried is not None:
                making.carried[_version(maker.table)] = maker.carried
            if made.rows:
                making.changed.add(maker.table.view)
                into, changes = self.followed[maker.table.view].changes, made.changes
                making.made[into] = changes
                self.measure(
                    maker.table,
                    maker.commit,
                    are_small=made.are_small,
                    held_bytes=None if changes is None else changes.nbytes,
                )
                if self._compact(maker.table.view, made.rows, maker.commit):
                    making.made[into] = None
            self._prune_now_and_then(maker.table.view)

    def _prune_now_and_then(self, view: str) -> None:
        if self.followed[view].is_measured:
            self._unpruned[view] = self._unpruned.get(view, 0) + 1
            if self._unpruned[view] >= _PRUNE_COMMITS:
                self._unpruned[view] = 0
                self.prune(view)

    def _compact(self, view: str, count: int, commit: int) -> bool:
        """Put the changes of commits together where they wait; return whether it was done."""
        followed = self.followed[view]
        if followed.always or all(
            state.sink.emit != "every" and not state.paused for state in followed.sinks
        ):
            return False
        if any(state.paused and state.sink.emit == "final" for state in followed.sinks):
            return False  # a row that closes and leaves meanwhile is still to be told
        if any(state.until is not None for state in followed.sinks):
            return False  # what is on its way stays as it is until it is there
        self._added[view] = self._added.get(view, 0) + count
        if self._added[view] <= COMPACT_ROWS:
            return False
        told = [told for of, told in self.leases.values() if of == view]
        [shown] = read_shown(self._file.rows, view)[-1:]
        left = compact(self._file, followed, shown, min([commit, *told]))
        self._added[view] = -left
        return True

    def measure(
        self,
        table: Table,
        commit: int,
        *,
        are_small: bool = False,
        held_bytes: int | None = None,
    ) -> None:
        """Note how large the changes of a commit are. MergeFailed: too large for a sink."""
        view = self.followed[table.view]
        if not are_small:
            sinks = [state.sink for state in view.sinks]
            check_sizes(self._file, table, view.changes, commit, sinks)
        if view.is_measured:
            if held_bytes is None:
                size = f"coalesce(sum({row_bytes(relation_of(table))}), 0)"
                counted = f"SELECT {size} FROM {view.changes} WHERE _commit = ?"
                [(held_bytes,)] = self._file.rows(counted, [commit])
            self._file.insert("headrace.change_sizes", [[table.view, commit, held_bytes]])

    def set_followers(self, followers: Followers, tables: Mapping[str, Table]) -> None:
        """Let sinks, and views that always keep their changes, be these."""
        self.write_told()
        self._limits = followers.limits
        commit = head_of(self._file.rows) + 1
        if set_followers(self._file, followers, tables, commit):
            self._file.run("UPDATE headrace.engine SET commits = ?", [commit])
        self.forget()
        for view in self.followed:
            self.prune(view)

    def follow(self, lease: str, view: str, token: Token) -> None:
        """Keep changes for a reader after a token."""
        add_lease(self._file, lease, view, token.whole)
        self.leases[lease] = (view, token.whole)
        self.forget()

    def unfollow(self, lease: str) -> None:
        """Let a reader go."""
        drop_lease(self._file, lease)
        self.leases.pop(lease, None)
        self.forget()

    def renew(self, lease: str, token: Token) -> None:
        """Note up to where a reader has the changes. TokenTooOld: its lease has ended."""
        found = self.leases.get(lease)
        if found is None:
            raise TokenTooOld(
                f"{token}: the lease of this reader has ended: it was too far behind, or closed; "
                f"begin with all rows of the view, without a token"
            )
        self.leases[lease] = (found[0], token.whole)

    def begin_publishing(self, topics: Sequence[str]) -> None:
        """Note that sinks which are told of several commits as one are on their way to this one."""
        self._file.run(
            "UPDATE headrace.sinks SET until = (SELECT commits FROM headrace.engine) "
            "WHERE until IS NULL AND emit = 'every' AND list_contains(?, topic)",
            [list(topics)],
        )
        self.forget()

    def pause_sink(self, topic: str, paused: bool) -> None:
        """Note whether a sink is told anything."""
        self._file.run("UPDATE headrace.sinks SET paused = ? WHERE topic = ?", [paused, topic])
        self.forget()

    def held_bytes(self, view: str) -> int:
        """Return how many bytes of a view's rows and changes are in memory."""
        found = (self._followed or {}).get(view)
        if found is None:
            return 0
        carried = self._carried.get((view, found.version))
        images = 0 if carried is None else carried.images.nbytes
        return images + self.recent.held_bytes(found.changes)

    @property
    def unwritten(self) -> Mapping[str, int]:
        """Up to which commit sinks have been told, where the ledger does not say so yet."""
        return self._unwritten

    def defer_told(self, commits: Mapping[str, int]) -> bool:
        """Keep what sinks were told in memory; return False if it has to be written now.

        A crash forgets it. Then the same changes are published again, and the log leaves out those
        it has, by their sequences. That holds only for changes of one version that are published
        commit by commit.
        """
        self._unwritten = {**self._unwritten, **commits}
        for view in self.followed.values():
            for state in view.sinks:
                told = self._unwritten.get(state.sink.topic)
                if told is None:
                    continue
                is_whole = state.until is not None or state.first is not None
                if is_whole or view.is_measured or not view.is_only:
                    return False
                if told - state.told >= _TOLD_COMMITS:
                    return False
        return True

    def write_told(self) -> None:
        """Write what `defer_told` has kept in memory."""
        if self._unwritten:
            self.told({})

    def told(self, commits: Mapping[str, int]) -> None:
        """Note that sinks have all changes up to a commit; drop what nobody needs any more."""
        commits, self._unwritten = {**self._unwritten, **commits}, {}
        known = self.followed
        for topic, commit in commits.items():
            self._file.run(
                "UPDATE headrace.sinks SET told = ?, until = NULL, first = NULL WHERE topic = ?",
                [commit, topic],
            )
        told = {
            name: replace(view, sinks=tuple(_told(state, commits) for state in view.sinks))
            for name, view in known.items()
        }
        for view in known.values():
            for state in view.sinks:
                if state.sink.topic in commits and state.first is not None:
                    self._file.run(f"DROP TABLE IF EXISTS {first_table(state.sink.topic)}")
        # What else followers are is as it was, so it is not read anew. If this fails, it is.
        self._followed = told
        for name, view in told.items():
            if view.sinks != known[name].sinks:
                self._added.pop(name, None)
                self._drop_told(name, view)

    def _drop_told(self, name: str, view: FollowedView) -> None:
        if view.is_measured:
            self.prune(name)
        elif view.is_only:
            drop_told(self._file, name, view)
        else:
            self.prune(name)
            self.forget()  # a version before it may be gone

    def prune(self, view: str) -> None:
        """Drop changes of a view that every follower has; end the leases that are too old."""
        # A copy: readers renew their leases meanwhile.
        leases = {lease: told for lease, (of, told) in list(self.leases.items()) if of == view}
        if ended := prune(self._file, view, leases, self._limits):
            self._ended.update(ended)
            self.forget()


def _version(table: Table) -> Version:
    return table.view, table.version


def _told(state: SinkState, commits: Mapping[str, int]) -> SinkState:
    if state.sink.topic not in commits:
        return state
    return replace(state, told=commits[state.sink.topic], until=None, first=None)
