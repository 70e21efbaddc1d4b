"""Compare the project's definitions with what the ledger holds, and decide what changes.

- What is unchanged goes on where it is; a failed view goes on from where it stopped. Of a statement
  that was edited without effect on its rows, the ledger keeps the new words.
- In a new project everything starts together in the main unit.
- A new or edited view is built from the log's start in a unit of its own; a new or edited stream
  takes all of its views along, because how it reads its records decides what they contain. Edited
  streams that a view reads together share their unit.
- What is no longer defined is dropped, and so is an unfinished build that was edited again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.ledger.definitions import hold_stream, hold_view
from headrace.ledger.entries import MAIN, Holding, HoldingState, Owner
from headrace.model.definitions import Project

__all__ = ["Changes", "decide_changes"]


@dataclass(frozen=True)
class Changes:
    """What to enter in the ledger, and what to take out of it."""

    enter: tuple[Holding, ...]
    drop: tuple[Holding, ...]


def decide_changes(
    project: Project,
    holdings: Sequence[Holding],
    evaluated: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
) -> Changes:
    """Return how the ledger is to follow the definitions.

    `evaluated` are the places that Spark evaluates, by the name and the version of a view, where it
    is new; one that the ledger knows goes on as it was begun.
    """
    enter: list[Holding] = []
    fresh = not holdings
    held = {holding.owner: holding for holding in holdings}
    streams = [hold_stream(stream, MAIN) for stream in project.streams]
    views = [hold_view(view, project.streams_of(view), MAIN) for view in project.views]
    views = [
        replace(
            entry,
            evaluated=held[entry.owner].evaluated
            if entry.owner in held
            else (evaluated or {}).get((entry.name, entry.version), ()),
        )
        for entry in views
    ]
    wanted = {entry.owner for entry in (*streams, *views)}
    if fresh:
        enter = [*streams, *views]
    else:
        edited = [entry for entry in streams if entry.owner not in held]
        units = _units_of(edited, views)
        for entry in (*streams, *views):
            unit = next((units[name] for name in entry.inputs if name in units), None)
            if unit is None:
                enter += _changed([entry], held)
            else:
                enter.append(replace(entry, unit=unit, state=HoldingState.BUILDING))
    drop = [holding for holding in holdings if _is_dropped(holding, wanted, holdings)]
    kept_streams = {
        (stream, holding.unit)
        for holding in holdings
        if holding.kind == "view" and holding not in drop
        for stream in holding.inputs
    }
    # A stream goes when the last view over it does.
    drop = [h for h in drop if h.kind == "view" or (h.name, h.unit) not in kept_streams]
    return Changes(tuple(enter), tuple(drop))


def _units_of(edited: Sequence[Holding], views: Sequence[Holding]) -> dict[str, str]:
    """Return the unit that builds each edited stream: one for all that a view reads together."""
    together = {entry.name: {entry.name} for entry in edited}
    for view in views:
        read = [name for name in view.inputs if name in together]
        joined = set().union(*(together[name] for name in read))
        together |= dict.fromkeys(joined, joined)
    version = {entry.name: entry.version for entry in edited}
    return {
        name: "stream:" + "+".join(f"{each}@{version[each]}" for each in sorted(joined))
        for name, joined in together.items()
    }


def _is_dropped(holding: Holding, wanted: set[Owner], holdings: Sequence[Holding]) -> bool:
    """Whether a version goes at once.

    One that is not wanted stays while its successor is built, if readers see it: it is in the main
    unit, or it was set aside and there is no other. Nobody has seen what is built along with its
    stream.
    """
    if holding.owner in wanted:
        return False
    if all((owner.kind, owner.name) != (holding.kind, holding.name) for owner in wanted):
        return True
    unit = [other for other in holdings if other.unit == holding.unit]
    if holding.unit != MAIN and any(other.kind == "stream" for other in unit):
        return True
    others = [h for h in holdings if (h.kind, h.name) == (holding.kind, holding.name)]
    return holding.unit != MAIN and any(other.unit == MAIN for other in others)


def _changed(wanted: Sequence[Holding], held: Mapping[Owner, Holding]) -> list[Holding]:
    """Return what is new, what is tried again, and what is written in other words now."""
    entered = []
    for new in wanted:
        old = held.get(new.owner)
        if old is None:
            unit = f"{new.kind}:{new.name}@{new.version}"
            entered.append(replace(new, unit=unit, state=HoldingState.BUILDING))
            continue
        # What no row depends on may be edited without a new version, an idle_timeout for one.
        kept = replace(old, forms=new.forms, text=new.text)
        if old.state is HoldingState.FAILED:
            kept = replace(kept, state=HoldingState.BUILDING, reason="")
        if kept != old:
            entered.append(kept)
    return entered
