"""What Spark's Python tasks of ours have in common."""

import gc
from collections.abc import Callable, Iterator

import pyarrow as pa

__all__ = ["Task", "spare_the_collector"]

#: What `mapInArrow` runs in a worker.
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MANY_OBJECTS = 10_000


def spare_the_collector() -> None:
    """Take what was imported out of the collector's sight.

    PySpark collects garbage after every task, which took 40 ms of each.
    """
    # Not again and again: what is garbage at that moment is never collected.
    if gc.get_freeze_count() < _MANY_OBJECTS < len(gc.get_objects()):
        gc.freeze()
