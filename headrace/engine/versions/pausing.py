"""Pause a view or a sink, and let it go on.

A paused view keeps its rows as they are, in a unit of its own that takes no turns; the others go
on. It stays paused when the engine is started again. When it goes on it reads what it missed from
the log, by the same code as a view that is built, and joins the others when it is level. So what it
contains then is what it would contain had it never been paused.

A paused sink is told nothing; the changes that it is owed wait in the store. When it goes on it is
told of them, in order; of several changes of one row perhaps only what they amount to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from headrace.engine.engine import Engine
from headrace.engine.unit import Unit
from headrace.errors import UsageError
from headrace.ledger.entries import MAIN, Holding, HoldingState, SetAside
from headrace.model.definitions import Sink
from headrace.model.names import closest

__all__ = ["pause_sink", "pause_view", "resume_sink", "resume_view"]


def pause_view(engine: Engine, name: str) -> None:
    """Pause a view when its turn under way has ended. UsageError: there is none, or it cannot be.

    To pause one that is paused changes nothing.
    """
    for unit in _units_with(engine, name):
        if unit.name != MAIN and _is_shared(unit, name):
            raise UsageError(
                f"{name} is being built together with its stream, so it cannot be paused by "
                f"itself; pause it when that is done (`headrace status {name}`)"
            )
    with engine.join_lock:  # so that it is not swapped in meanwhile
        for unit in _units_with(engine, name):
            with unit.lock:
                if unit.name == MAIN:
                    _set_aside(engine, unit, name)
                elif unit.state is not HoldingState.PAUSED:
                    _enter(engine, unit, HoldingState.PAUSED)


def resume_view(engine: Engine, name: str) -> None:
    """Let a paused view go on. UsageError: there is none. PositionLost: records it needs are gone.

    To resume one that is not paused changes nothing.
    """
    for unit in _units_with(engine, name):
        with unit.lock:
            if unit.state is HoldingState.PAUSED:
                with _in_state(unit, HoldingState.BUILDING):
                    engine.planner.begin_unit(unit)
                _enter(engine, unit, HoldingState.BUILDING)


def pause_sink(engine: Engine, name: str) -> None:
    """Let a sink be told nothing from now on; what is on its way arrives. UsageError: none."""
    sink = _sink(engine, name)
    engine.tools.store.pause_sink(engine.epoch, sink.topic, paused=True)
    engine.emitting.paused.add(sink.topic)


def resume_sink(engine: Engine, name: str) -> None:
    """Let a paused sink be told what waits for it, and go on. UsageError: there is none."""
    sink = _sink(engine, name)
    engine.tools.store.pause_sink(engine.epoch, sink.topic, paused=False)
    engine.emitting.resume(sink.topic)
    engine.beside.soon()


def _sink(engine: Engine, name: str) -> Sink:
    found = next((each for each in engine.emitting.sinks if each.name == name), None)
    if found is None:
        known = sorted(each.name for each in engine.emitting.sinks)
        there = ", ".join(known) or "none"
        raise UsageError(f"there is no sink {name}{closest(name, known)}; there are: {there}")
    return found


def _units_with(engine: Engine, name: str) -> list[Unit]:
    units = list(engine.units.values())
    found = [unit for unit in units if any(fold.name == name for fold in unit.folds)]
    if not found:
        known = sorted({fold.name for unit in units for fold in unit.folds})
        there = ", ".join(known) or "none"
        raise UsageError(f"there is no view {name}{closest(name, known)}; there are: {there}")
    return found


def _is_shared(unit: Unit, name: str) -> bool:
    owns = any(source.owned for source in unit.streams.values())
    return owns or any(fold.name != name for fold in unit.folds)


def _set_aside(engine: Engine, unit: Unit, name: str) -> None:
    folds = [fold for fold in unit.folds if fold.name == name]
    if not folds:
        return
    aside = SetAside(name, folds[0].version, "", HoldingState.PAUSED)
    engine.tools.store.set_aside(engine.epoch, unit.name, [aside])
    unit.leave(aside)
    engine.open_asides(unit, folds)


def _enter(engine: Engine, unit: Unit, state: HoldingState) -> None:
    engine.tools.store.hold(engine.epoch, list(_held(engine, unit, state)), {})
    unit.state, unit.reason = state, ""


def _held(engine: Engine, unit: Unit, state: HoldingState) -> Iterator[Holding]:
    with engine.tools.store.open() as snapshot:
        for holding in snapshot.holdings():
            if holding.kind == "view" and holding.unit == unit.name:
                yield replace(holding, state=state, reason="")


@contextmanager
def _in_state(unit: Unit, state: HoldingState) -> Iterator[None]:
    """Let a unit have another state within."""
    before = unit.state
    unit.state = state
    try:
        yield
    finally:
        unit.state = before
