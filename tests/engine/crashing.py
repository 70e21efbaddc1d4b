"""Let an engine die at one point of a turn after the other."""

from collections.abc import Callable, Sequence

from agreement import assert_agrees_with_the_reference
from soaking import SOAKING

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
    """Crash at each of the points; the answer is the reference's.

    All on one log and store, so that what a crash leaves behind meets the next ones: each crash but
    the first is in a turn that is taken again, or follows a commit that was not published. In short
    turns twice at a point. In a soak twice in long turns too, and there every point has its answer
    compared. `append` is given a number that grows.
    """
    crashes = 2 if gear == "short" or SOAKING else 1
    # Behind the commit first: the others would fold the same records, those that fail among them,
    # again and again.
    ordered = [points[0], *reversed(points[1:])]
    for number, point in enumerate(ordered):
        try:
            for attempt in range(crashes):
                append(2 * number + attempt)
                h.crash(point)
                h.turn(gear=gear)
                assert h.crashed, "it was not reached"
                h.restart()
                after_restart()
            if SOAKING or point == ordered[-1]:
                while h.turn(gear=gear):
                    pass
                assert_agrees_with_the_reference(h)
        except AssertionError as error:
            error.add_note(f"after crashes at {point}")
            raise
