"""Run an engine: the main unit here, every other unit in a thread of its own."""

import threading
from contextlib import nullcontext

from headrace.engine.engine import Engine
from headrace.engine.reach import Reach
from headrace.engine.unit import Unit
from headrace.engine.waiting import Waiting
from headrace.errors import Unreachable
from headrace.ledger.entries import MAIN, TurnReport

__all__ = ["run_engine"]

MAINTAIN_SECONDS = 60
# Until the end of the log is reached, and all is swapped in that can be.
_ONCE_POLL_S = 0.05


def run_engine(
    engine: Engine, stop: threading.Event, *, once: bool = False, end_of_input: bool = False
) -> None:
    """Turn until told to stop; with `once`, until the end of the log as it is now.

    The turn under way is finished first. Raises what stops the main unit, or any other unit for a
    reason that is not its view's own: a view's failure sets that view aside only. A log out of
    reach is waited for, except with `once`: then sinks are told all that was kept for them in the
    end. With `end_of_input` too, every window is closed when everything is read.
    """
    if once:
        engine.planner.stop_at_the_end()
    main = engine.units[MAIN]
    poll_s = _ONCE_POLL_S if once else engine.settings.poll_ms / 1000
    waiting = Waiting(engine.tools.log, engine.planner, stop, poll_s=poll_s)
    followers: dict[str, threading.Thread] = {}
    failures: list[BaseException] = []
    reach = Reach(stop, patient=not once)
    # In a thread of its own: compacting a large topic takes seconds, and turns go on meanwhile.
    housekeeping = threading.Thread(
        target=_maintain, args=(engine, waiting, failures, stop), name="housekeeping"
    )
    housekeeping.start()

    def end(error: BaseException) -> None:
        failures.append(error)
        waiting.wake_all()

    # A run that ends by itself publishes in line, so that it knows when all is told.
    publishing = nullcontext() if once else engine.beside.running(waiting.wake_all, end)
    with publishing:
        try:
            with waiting.heeding_stop(), waiting.waits_of(main):
                while not stop.is_set() and not failures:
                    _follow_new_units(engine, waiting, followers, failures, stop, patient=not once)
                    with engine.join_lock:
                        pass  # a unit that waits to be swapped in goes first
                    if _turn(engine, main, reach) is not None:
                        waiting.wake_others(main)
                    elif once and engine.finished():
                        if end_of_input:
                            engine.end_input()
                            end_of_input = False
                        elif not engine.emitting.ending:
                            engine.emitting.ending = True
                        else:
                            break
                    elif not reach.lost:
                        waiting.wait(main)
        finally:
            stop.set()
            for thread in (*followers.values(), housekeeping):
                thread.join()
    if failures:
        raise failures[0]


def _maintain(
    engine: Engine, waiting: Waiting, failures: list[BaseException], stop: threading.Event
) -> None:
    try:
        while not stop.is_set():
            engine.tools.log.maintain()
            stop.wait(MAINTAIN_SECONDS)
    except BaseException as error:  # noqa: BLE001 - the main thread raises it
        failures.append(error)
        waiting.wake_all()


def _turn(engine: Engine, unit: Unit, reach: Reach) -> TurnReport | None:
    """Take one turn of a unit; None when there was nothing to read, or no log to read from."""
    try:
        if reach.lost:
            engine.publish()  # what the last turn committed and could not publish any more
        report = engine.turn_unit(unit)
    except Unreachable as error:
        reach.wait(error)
        return None
    reach.found()
    return report


def _follow_new_units(
    engine: Engine,
    waiting: Waiting,
    followers: dict[str, threading.Thread],
    failures: list[BaseException],
    stop: threading.Event,
    *,
    patient: bool,
) -> None:
    for name in [name for name, thread in followers.items() if not thread.is_alive()]:
        del followers[name]
    for unit in list(engine.units.values()):
        waits = unit.name != MAIN and not unit.state.stands_still
        if waits and unit.name not in followers:
            thread = threading.Thread(
                target=_follow,
                args=(engine, waiting, unit, failures, stop, Reach(stop, patient=patient)),
                name=unit.name,
            )
            followers[unit.name] = thread
            thread.start()


def _follow(
    engine: Engine,
    waiting: Waiting,
    unit: Unit,
    failures: list[BaseException],
    stop: threading.Event,
    reach: Reach,
) -> None:
    try:
        with waiting.waits_of(unit):
            while not stop.is_set() and not unit.state.stands_still:
                if unit.name not in engine.units:
                    return  # its successor was swapped in
                report = _turn(engine, unit, reach)
                if not reach.lost and _joined(engine, unit, reach):
                    return
                if report is not None:
                    waiting.wake_others(unit)
                elif not reach.lost:
                    waiting.wait(unit)
    except BaseException as error:  # noqa: BLE001 - the main thread raises it
        failures.append(error)
        waiting.wake_all()


def _joined(engine: Engine, unit: Unit, reach: Reach) -> bool:
    try:
        return engine.join_main(unit)
    except Unreachable as error:
        reach.wait(error)
        return False
