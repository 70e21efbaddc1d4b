"""The laws of promise 2: nothing is lost in silence.

- For every stream: `read = accepted + dead + duplicate`.
  Of change events some are `ignored`, and are a part of the sum.
  For every table, of its changes: `read = upserts + deletes + truncates + ignored + dead`.
- For every view: `seen = skipped + dead + matched`, and `pairs = folded + late`. Those before count
  records; these count pairs of a record and a window around it, at least one for every record that
  matched (where windows do not overlap, and without windows, just one). `corrected` are those of
  folded whose window had ended by the record's own watermark (of a session, the one that it would
  be alone): at most all of them.
- Where a view makes several rows of a record (explode and its kin) it is counted by input:
  `records = left_out + dead + empty + expanded`, of records: left out by a condition before, dead,
  without an element, made into rows; and `seen = skipped + matched`, of rows. `ended` are rows of
  one generator that the next one made none of.
They are checked on what a turn adds before it commits, and again by `headrace audit` on the sums.
"""

from collections.abc import Mapping

from headrace.errors import EngineError
from headrace.ledger.entries import Counted, Counters, Owner
from headrace.schema.codec import Operation

__all__ = [
    "CHANGE_COUNTERS",
    "EXPANDED_COUNTERS",
    "STREAM_COUNTERS",
    "VIEW_COUNTERS",
    "broken_laws",
    "check_laws",
    "totals_of",
]

#: `unguarded` counts readable records whose arrival nobody stamped: their clocks may run ahead.
STREAM_COUNTERS = ("read", "accepted", "dead", "duplicate", "unguarded")
#: Those of a table, besides: what its records do. `ignored` have no effect, by their form.
CHANGE_COUNTERS = {
    Operation.UPSERT: "upserts",
    Operation.DELETE: "deletes",
    Operation.TRUNCATE: "truncates",
    Operation.IGNORE: "ignored",
}
VIEW_COUNTERS = ("seen", "skipped", "dead", "matched", "pairs", "folded", "late", "corrected")
#: Those of an input of a view that makes several rows of a record, besides.
EXPANDED_COUNTERS = ("records", "left_out", "empty", "expanded", "ended")
#: What is never more than something else.
_PARTS = (("matched", "pairs"), ("corrected", "folded"))


def broken_laws(owner: Owner, counters: Counters) -> list[str]:
    """Return every law that the counters of one stream or view break, as sentences."""
    laws: list[tuple[str, tuple[str, ...]]]
    if owner.kind == "stream":
        laws = [("read", ("accepted", "dead", "duplicate"))]
        if "ignored" in counters:
            laws = [("read", ("accepted", "dead", "duplicate", "ignored"))]
        if "upserts" in counters:
            changes = tuple(CHANGE_COUNTERS.values())
            laws = [("read", (*changes, "dead")), ("accepted", ("upserts", "deletes"))]
    elif "records" in counters:
        laws = [
            ("records", ("left_out", "dead", "empty", "expanded")),
            ("seen", ("skipped", "matched")),
            ("pairs", ("folded", "late")),
        ]
    else:
        laws = [("seen", ("skipped", "dead", "matched")), ("pairs", ("folded", "late"))]
    broken = [f"{name} = {counters[name]} is negative" for name in counters if counters[name] < 0]
    for whole, parts in laws:
        if counters[whole] != sum(counters[part] for part in parts):
            sums = " + ".join(f"{part} {counters[part]}" for part in parts)
            broken.append(f"{whole} {counters[whole]} is not {sums}")
    for part, whole in () if owner.kind == "stream" else _PARTS:
        if counters[part] > counters[whole]:
            broken.append(f"{part} {counters[part]} is more than {whole} {counters[whole]}")
    return [f"{owner.kind} {owner.name}: {sentence}" for sentence in broken]


def totals_of(counters: Mapping[Counted, Counters]) -> dict[Owner, Counters]:
    """Return the counters of every version, those of all its inputs together."""
    totals: dict[Owner, dict[str, int]] = {}
    for each, counted in counters.items():
        total = totals.setdefault(each.owner, {})
        for name, value in counted.items():
            total[name] = total.get(name, 0) + value
    return dict(totals)


def check_laws(counters: Mapping[Counted, Counters]) -> None:
    """Refuse counters that do not add up. EngineError: a record would be lost; nothing commits."""
    broken = [sentence for each in counters for sentence in broken_laws(each.owner, counters[each])]
    if broken:
        raise EngineError(
            f"the turn does not add up and was not committed: {'; '.join(broken)}. "
            f"This is a fault of Headrace; please report it with the definitions."
        )
