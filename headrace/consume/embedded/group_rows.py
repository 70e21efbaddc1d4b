"""Who is in a group and who reads what: what each step writes into the coordinator's tables.

There is no barrier at which all members stop. Whoever changes the membership, or finds it changed,
works out the targets anew (assignment.py). A member gives up what is no longer its target, at its
own `poll`, and takes what is its target and nobody's. So between two members a partition is free
for a moment, and never read by both.
"""

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from headrace.consume.embedded.assignment import assign
from headrace.consume.embedded.coordinator import now_ms
from headrace.log.base import Partition
from headrace.log.embedded.topics import StoredTopic

__all__ = [
    "GroupRows",
    "MemberRow",
    "Standing",
    "facts_of",
    "is_alive",
    "look_up",
    "show_sign_of_life",
]

# What is known of topics: name to [id, partitions]; a topic that is not there is left out.
Facts = dict[str, list[str | int]]
FindTopic = Callable[[str], StoredTopic | None]


class MemberRow(NamedTuple):
    """A member as it stands in the table."""

    id: str
    instance: str | None
    topics: list[str]
    session_timeout_ms: int
    seen_ms: int


class Standing(NamedTuple):
    """Whether anything happened to a group: while it is the same, a member has nothing to do."""

    version: int
    facts: str
    all_alive: bool

    def knows(self, facts: Facts) -> bool:
        """Whether all members live, and the targets were worked out for topics like these."""
        known: Facts = json.loads(self.facts)
        return self.all_alive and all(known.get(topic) == fact for topic, fact in facts.items())


def facts_of(topic: StoredTopic) -> list[str | int]:
    """Return what, when it changes, makes the targets of a topic's partitions others."""
    return [topic.id, topic.topic.partitions]


def is_alive(member: MemberRow, now: int) -> bool:
    """Whether a member's last sign of life is recent; one from the future is of before a reboot."""
    return member.seen_ms <= now < member.seen_ms + member.session_timeout_ms


def look_up(connection: sqlite3.Connection, group: str) -> Standing | None:
    """Return how a group stands, None if it has no row. It may say dead where none is."""
    row = connection.execute(
        "SELECT version, topics, NOT EXISTS (SELECT 1 FROM members WHERE group_name = :group "
        "AND NOT (seen_ms <= :now AND :now < seen_ms + session_timeout_ms)) "
        "FROM groups WHERE name = :group",
        {"group": group, "now": now_ms()},
    ).fetchone()
    return None if row is None else Standing(row[0], row[1], bool(row[2]))


def show_sign_of_life(connection: sqlite3.Connection, member: str) -> bool:
    """Note that a member lives; False when it is no longer one."""
    changed = connection.execute(
        "UPDATE members SET seen_ms = ? WHERE id = ?", (now_ms(), member)
    ).rowcount
    return changed == 1


class GroupRows:
    """One group's rows, within one step."""

    def __init__(self, connection: sqlite3.Connection, group: str) -> None:
        self._connection = connection
        self._group = group

    def members(self) -> list[MemberRow]:
        """Return all members that were not removed, dead or alive."""
        rows = self._connection.execute(
            "SELECT id, instance, topics, session_timeout_ms, seen_ms FROM members "
            "WHERE group_name = ? ORDER BY id",
            (self._group,),
        )
        return [MemberRow(id, who, json.loads(topics), *rest) for id, who, topics, *rest in rows]

    def owned(self, member: str) -> set[Partition]:
        """Return what a member reads."""
        return self._places("owner = ?", member)

    def surplus(self, member: str) -> list[Partition]:
        """Return what a member reads and others shall."""
        return sorted(self._places("owner = ? AND target IS NOT owner", member))

    def _places(self, condition: str, member: str) -> set[Partition]:
        rows = self._connection.execute(
            f"SELECT topic, number FROM places WHERE group_name = ? AND {condition}",
            (self._group, member),
        )
        return {Partition(topic, number) for topic, number in rows}

    def enter(self, member: MemberRow) -> None:
        """Add a member; one with an instance id takes over from whoever had that id."""
        for other in self.members():
            if member.instance is not None and other.instance == member.instance:
                self._connection.execute("DELETE FROM members WHERE id = ?", (other.id,))
                for column in ("owner", "target"):
                    self._connection.execute(
                        f"UPDATE places SET {column} = ? WHERE group_name = ? AND {column} = ?",
                        (member.id, self._group, other.id),
                    )
        self._connection.execute(
            "INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)",
            (
                member.id,
                self._group,
                member.instance,
                json.dumps(member.topics),
                member.session_timeout_ms,
                member.seen_ms,
            ),
        )
        # Anywhere, so that a member of the past never takes a later group for the one it knew.
        self._connection.execute(
            "INSERT OR IGNORE INTO groups VALUES (?, ?, '{}')", (self._group, secrets.randbits(62))
        )

    def remove(self, members: Iterable[str]) -> None:
        """Remove members; what they read is free."""
        for member in members:
            self._connection.execute("DELETE FROM members WHERE id = ?", (member,))
            self._connection.execute(
                "UPDATE places SET owner = NULL WHERE group_name = ? AND owner = ?",
                (self._group, member),
            )

    def remove_dead(self) -> bool:
        """Remove members that show no sign of life; True if there were any."""
        now = now_ms()
        dead = [member.id for member in self.members() if not is_alive(member, now)]
        self.remove(dead)
        return bool(dead)

    def retarget(self, find_topic: FindTopic) -> None:
        """Work out anew who shall read what, since members or topics are other than before."""
        members = self.members()
        if not members:
            self.delete()
            return
        facts: Facts = {}
        for topic in sorted({topic for member in members for topic in member.topics}):
            if (stored := find_topic(topic)) is not None:
                facts[topic] = facts_of(stored)
        for topic, fact in self._facts().items():
            # Of a topic that was made anew nobody reads anything yet.
            if topic not in facts or facts[topic][0] != fact[0]:
                self._connection.execute(
                    "DELETE FROM places WHERE group_name = ? AND topic = ?", (self._group, topic)
                )
        alive = {member.id for member in members}
        rows = self._connection.execute(
            "SELECT topic, number, owner, target FROM places WHERE group_name = ?", (self._group,)
        ).fetchall()
        # A partition that is on its way is best left with who still reads it.
        previous = {
            Partition(topic, number): owner if owner in alive else target
            for topic, number, owner, target in rows
        }
        targets = assign(
            [Partition(topic, n) for topic, (_, count) in facts.items() for n in range(int(count))],
            {member.id: member.topics for member in members},
            previous,
        )
        self._connection.executemany(
            "INSERT INTO places VALUES (?, ?, ?, NULL, ?) "
            "ON CONFLICT DO UPDATE SET target = excluded.target",
            [(self._group, *place, targets.get(place)) for place in {**previous, **targets}],
        )
        self._connection.execute(
            "DELETE FROM places WHERE group_name = ? AND owner IS NULL AND target IS NULL",
            (self._group,),
        )
        self._connection.execute(
            "UPDATE groups SET topics = ? WHERE name = ?", (json.dumps(facts), self._group)
        )
        self.note_change()

    def _facts(self) -> Facts:
        row = self._connection.execute(
            "SELECT topics FROM groups WHERE name = ?", (self._group,)
        ).fetchone()
        facts: Facts = {} if row is None else json.loads(row[0])
        return facts

    def take(self, member: str) -> set[Partition]:
        """Make a member the reader of what it shall read and nobody reads."""
        free = self._places("owner IS NULL AND target = ?", member)
        self._set_owner(member, sorted(free))
        return free

    def give_up(self, member: str, places: Sequence[Partition]) -> None:
        """Free what a member reads."""
        owned = self.owned(member)
        self._set_owner(None, [place for place in places if place in owned])

    def _set_owner(self, owner: str | None, places: Sequence[Partition]) -> None:
        if places:
            self._connection.executemany(
                "UPDATE places SET owner = ? WHERE group_name = ? AND topic = ? AND number = ?",
                [(owner, self._group, *place) for place in places],
            )
            self.note_change()

    def note_change(self) -> None:
        """Let all members look again."""
        self._connection.execute(
            "UPDATE groups SET version = version + 1 WHERE name = ?", (self._group,)
        )

    def delete(self) -> None:
        """Forget the group, which has no members; what it has committed is kept elsewhere."""
        self._connection.execute("DELETE FROM places WHERE group_name = ?", (self._group,))
        self._connection.execute("DELETE FROM groups WHERE name = ?", (self._group,))
