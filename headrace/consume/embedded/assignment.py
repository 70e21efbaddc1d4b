"""Who of a group shall read which partition: a pure function.

Promises:
- Complete: every partition whose topic somebody subscribes to has exactly one reader, who does.
- Balanced: no partition, nor a chain of them, can go from one member to another that reads two
  fewer. Where all subscribe to the same topics, that is within one of each other.
- Sticky: a partition stays where it was unless the balance needs it elsewhere; where all subscribe
  to the same topics, as few move as can be.
- The same for whoever works it out: it depends on the arguments alone.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

from headrace.log.base import Partition

__all__ = ["assign"]


def assign(
    partitions: Iterable[Partition],
    subscriptions: Mapping[str, Collection[str]],
    previous: Mapping[Partition, str],
) -> dict[Partition, str]:
    """Return the reader of every partition that can have one.

    `subscriptions` has the topics of every member; `previous` who read a partition until now, who
    need not be a member any more.
    """
    members = sorted(subscriptions)
    readers: dict[str, list[str]] = {}
    for member in members:
        for topic in sorted(set(subscriptions[member])):
            readers.setdefault(topic, []).append(member)
    places = sorted(place for place in partitions if place.topic in readers)
    held: dict[str, list[Partition]] = {member: [] for member in members}
    unread: list[Partition] = []
    for place in places:
        before = previous.get(place)
        if before in held and place.topic in subscriptions[before]:
            held[before].append(place)
        else:
            unread.append(place)
    # Those that few can read go first, so that the others fill up what is left.
    for place in sorted(unread, key=lambda place: (len(readers[place.topic]), place)):
        least = min(readers[place.topic], key=lambda member: (len(held[member]), member))
        held[least].append(place)
    while path := _path_to_one_with_two_fewer(held, readers):
        for giver, taker in pairwise(path):
            moving = _least_missed(held[giver], taker, subscriptions, previous)
            held[giver].remove(moving)
            held[taker].append(moving)
    return {place: member for member, own in held.items() for place in own}


def _path_to_one_with_two_fewer(
    held: Mapping[str, Collection[Partition]], readers: Mapping[str, Collection[str]]
) -> list[str]:
    """Return members along which partitions can move, from who has most; empty if balanced."""
    fewest = min((len(own) for own in held.values()), default=0)
    for start in sorted(held, key=lambda member: (-len(held[member]), member)):
        if len(held[start]) < fewest + 2:
            break
        came_from = {start: start}
        waiting = deque([start])
        found: list[str] = []
        while waiting:
            member = waiting.popleft()
            if len(held[start]) >= len(held[member]) + 2:
                found.append(member)
            for topic in sorted({place.topic for place in held[member]}):
                for reader in readers[topic]:
                    if reader not in came_from:
                        came_from[reader] = member
                        waiting.append(reader)
        if found:
            # To whoever has least; the first found is the one with the fewest moves on the way.
            path = [min(found, key=lambda member: len(held[member]))]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
    return []


def _least_missed(
    own: Collection[Partition],
    taker: str,
    subscriptions: Mapping[str, Collection[str]],
    previous: Mapping[Partition, str],
) -> Partition:
    """Return which partition should go: back to the taker, or one that has just come, or the last.

    A partition that was the taker's before moves back; one that nobody read moves nothing.
    """
    possible = [place for place in own if place.topic in subscriptions[taker]]
    return max(
        possible,
        key=lambda place: (previous.get(place) == taker, previous.get(place) is None, place),
    )
