"""The laws of promise 2: nothing is lost in silence.

- For every stream: `read = accepted + dead + duplicate`.
- For every view: `seen = skipped + dead + matched` and `matched = folded + late`.
They are checked on what a turn adds before it commits, and again by `headrace audit` on the sums.
"""

from collections.abc import Mapping

from headrace.errors import EngineError
from headrace.ledger.entries import Counters, Owner

__all__ = ["STREAM_COUNTERS", "VIEW_COUNTERS", "broken_laws", "check_laws"]

#: `unguarded` counts accepted records whose arrival nobody stamped: their clocks may run ahead.
STREAM_COUNTERS = ("read", "accepted", "dead", "duplicate", "unguarded")
VIEW_COUNTERS = ("seen", "skipped", "dead", "matched", "folded", "late")


def broken_laws(owner: Owner, counters: Counters) -> list[str]:
    """Return every law that the counters of one stream or view break, as sentences."""
    laws = (
        [("read", ("accepted", "dead", "duplicate"))]
        if owner.kind == "stream"
        else [("seen", ("skipped", "dead", "matched")), ("matched", ("folded", "late"))]
    )
    broken = [f"{name} = {counters[name]} is negative" for name in counters if counters[name] < 0]
    for whole, parts in laws:
        if counters[whole] != sum(counters[part] for part in parts):
            sums = " + ".join(f"{part} {counters[part]}" for part in parts)
            broken.append(f"{whole} {counters[whole]} is not {sums}")
    return [f"{owner.kind} {owner.name}: {sentence}" for sentence in broken]


def check_laws(counters: Mapping[Owner, Counters]) -> None:
    """Refuse counters that do not add up. EngineError: a record would be lost; nothing commits."""
    broken = [sentence for owner in counters for sentence in broken_laws(owner, counters[owner])]
    if broken:
        raise EngineError(
            f"the turn does not add up and was not committed: {'; '.join(broken)}. "
            f"This is a fault of Headrace; please report it with the definitions."
        )
