"""How often a random case is tried: a few times in `make test`, many times in `make soak`.

In `make test` the cases are the same in every run. HEADRACE_TIMES=20, as `make soak` sets it, has
twenty times as many, drawn from a new seed; the seed is told when the run begins, and
HEADRACE_SEED=<seed> draws the same cases again.
"""

import os
import random

__all__ = ["SEED", "SOAKING", "seeded", "times"]

SOAKING = "HEADRACE_TIMES" in os.environ
_TIMES = int(os.environ.get("HEADRACE_TIMES", "1"))
#: In the environment, so that the workers of a run have the same one.
SEED = (
    int(os.environ.setdefault("HEADRACE_SEED", str(random.SystemRandom().randrange(2**32))))
    if SOAKING
    else 0
)


def times(few: int, *, soaked: int | None = None) -> int:
    """Return how many cases to try where `make test` tries a few.

    A soak multiplies `soaked` instead, where that is given: `make test` tries fewer for its time.
    """
    if not SOAKING:
        return few
    return (few if soaked is None else soaked) * _TIMES


def seeded(seed: int) -> random.Random:
    """Return what draws the cases: by the test's own seed, in a soak by the run's too."""
    return random.Random(seed + SEED)
