"""Compare the project's definitions with what the ledger holds, and decide what changes.

- What is unchanged goes on where it is; a failed view goes on from where it stopped. Of a statement
  that was edited without effect on its rows, the ledger keeps the new words.
- In a new project everything starts together in the main unit.
- A new or edited view is built from the log's start in a unit of its own; a new or edited stream
  takes all of its views along, because how it reads its records decides what they contain.
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


def decide_changes(project: Project, holdings: Sequence[Holding]) -> Changes:
    """Return how the ledger is to follow the definitions."""
    enter: list[Holding] = []
    wanted: set[Owner] = set()
    fresh = not holdings
    held = {holding.owner: holding for holding in holdings}
    for stream in project.streams:
        entry = hold_stream(stream, MAIN)
        wanted.add(entry.owner)
        views = [hold_view(view, [stream], MAIN) for view in project.views_over(stream.name)]
        wanted |= {view.owner for view in views}
        if fresh:
            enter += [entry, *views]
        elif entry.owner not in held:
            unit = f"stream:{stream.name}@{entry.version}"
            building = HoldingState.BUILDING
            enter += [replace(new, unit=unit, state=building) for new in (entry, *views)]
        else:
            enter += _changed([entry], held)
            enter += _changed(views, held)
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
