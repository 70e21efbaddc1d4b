"""Partitions are shared out completely, evenly, and with as few moves as can be.

Method: random groups that grow and shrink; balance and completeness are checked by definition, the
number of moves against the smallest one that any even sharing needs.
"""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.consume.embedded.assignment import assign
from headrace.log.base import Partition

TOPICS = ["a", "b", "c"]


def places(**counts: int) -> list[Partition]:
    return [Partition(topic, n) for topic, count in counts.items() for n in range(count)]


def loads(assigned: dict[Partition, str], members: list[str]) -> list[int]:
    return [list(assigned.values()).count(member) for member in members]


def test_by_hand() -> None:
    four = places(t=4)
    one = assign(four, {"m": ["t"]}, {})
    assert one == dict.fromkeys(four, "m")
    two = assign(four, {"m": ["t"], "n": ["t"]}, one)
    assert two == {four[0]: "m", four[1]: "m", four[2]: "n", four[3]: "n"}
    assert assign(four, {"n": ["t"]}, two) == dict.fromkeys(four, "n")
    many = assign(four, {name: ["t"] for name in "mnopqr"}, two)
    assert sorted(loads(many, list("mnopqr"))) == [0, 0, 1, 1, 1, 1]
    assert (many[four[0]], many[four[2]]) == ("m", "n")
    assert assign(four, {}, two) == assign(four, {"m": ["other"]}, two) == {}


def test_a_chain_of_moves_is_found_where_no_single_one_helps() -> None:
    # m can give to k only, and k to n only: one partition each, though no two differ by two.
    before = {Partition("a", 0): "m", Partition("a", 1): "m", Partition("b", 0): "k"}
    after = assign(before, {"m": ["a"], "k": ["a", "b"], "n": ["b"]}, before)
    assert loads(after, ["m", "k", "n"]) == [1, 1, 1]


members = st.lists(st.sampled_from("klmnopqrst"), max_size=8, unique=True)


@settings(deadline=None, max_examples=150)
@given(
    steps=st.lists(st.tuples(members, st.integers(1, 7), st.integers(0, 7)), min_size=2, max_size=5)
)
def test_where_all_read_the_same_loads_differ_by_one_and_few_move(
    steps: list[tuple[list[str], int, int]],
) -> None:
    before: dict[Partition, str] = {}
    for names, a, b in steps:
        everything = places(a=a, b=b)
        after = assign(everything, {name: ["a", "b"] for name in names}, before)
        assert set(after) == (set(everything) if names else set())
        if names:
            counts = loads(after, names)
            assert max(counts) - min(counts) <= 1
            stay = [place for place in everything if before.get(place) in names]
            moved = sum(after[place] != before[place] for place in stay)
            # Who had most keeps the larger share, and nobody loses more than it has too much.
            had = sorted((sum(before[p] == name for p in stay) for name in names), reverse=True)
            floor, larger = divmod(len(everything), len(names))
            share = [floor + (n < larger) for n in range(len(names))]
            assert moved == sum(max(0, h - s) for h, s in zip(had, share, strict=True))
        assert assign(everything, {name: ["a", "b"] for name in reversed(names)}, after) == after
        before = after


@settings(deadline=None, max_examples=150)
@given(
    steps=st.lists(
        st.tuples(
            st.dictionaries(
                st.sampled_from("klmnopq"), st.lists(st.sampled_from(TOPICS), unique=True)
            ),
            st.fixed_dictionaries({topic: st.integers(0, 5) for topic in TOPICS}),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_with_different_topics_everything_is_read_by_subscribers_and_nothing_can_be_evened_out(
    steps: list[tuple[dict[str, list[str]], dict[str, int]]],
) -> None:
    before: dict[Partition, str] = {}
    for subscriptions, counts in steps:
        everything = places(**counts)
        after = assign(everything, subscriptions, before)
        readable = [p for p in everything if any(p.topic in own for own in subscriptions.values())]
        assert sorted(after) == sorted(readable)
        assert all(place.topic in subscriptions[member] for place, member in after.items())
        for place, member in after.items():
            for other, topics in subscriptions.items():
                if place.topic in topics:
                    more, fewer = loads(after, [member, other])
                    assert more - fewer <= 1
        assert assign(everything, subscriptions, after) == after
        before = after


def test_members_that_come_one_by_one_move_one_share_each() -> None:
    everything = places(t=12)
    names: list[str] = []
    states = [{}]
    for name in "klmnop":
        names.append(name)
        states.append(assign(everything, {each: ["t"] for each in names}, states[-1]))
    for count, (before, after) in enumerate(pairwise(states[1:]), 2):
        moved = [place for place in everything if before[place] != after[place]]
        assert len(moved) == 12 // count
        assert all(after[place] == names[count - 1] for place in moved)
