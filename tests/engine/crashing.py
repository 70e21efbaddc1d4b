"""Let an engine die at one point of a turn after the other."""

from collections.abc import Callable, Sequence

from agreement import assert_agrees_with_the_reference

from headrace.testing import Harness

__all__ = ["crash_at_every_point"]


def crash_at_every_point(
    h: Harness,
    points: Sequence[str],
    append: Callable[[int], None],
    *,
    gear: str,
    after_restart: Callable[[], None] = lambda: None,
) -> None:
    """Crash at each of the points; every answer is the reference's.

    All on one log and store, so that what a crash leaves behind meets the next ones; twice at a
    point, the second time in the turn that is taken again. `append` is given a number that grows.
    """
    for number, point in enumerate(points):
        try:
            for attempt in range(2):
                append(2 * number + attempt)
                h.crash(point)
                h.turn(gear=gear)
                assert h.crashed, "it was not reached"
                h.restart()
                after_restart()
            while h.turn(gear=gear):
                pass
            assert_agrees_with_the_reference(h)
        except AssertionError as error:
            error.add_note(f"after crashes at {point}")
            raise
