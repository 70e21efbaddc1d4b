"""Step 4 for a stream with a unique id: find the duplicates among a turn's readable records.

In a short turn the driver does it, in a long one Spark tasks do (unique_tasks.py): the same step
(operators/dedup.py) on the same files (operators/state). What it returns is nothing until the turn
commits: the files that it wrote are named by no manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.engine.gears.offset_sets import OffsetSet
from headrace.engine.gears.stamping import Clocks
from headrace.ledger.entries import Manifest, Progress, StreamPartition
from headrace.operators.dedup import Batch, deduplicate
from headrace.operators.state import Hasher, Run, State, StateFolder
from headrace.plan.stages import Operator, Step
from headrace.time.clocks import NEVER

__all__ = ["Memory", "Stepped", "remembered", "step_rows"]

# What a short turn merges of its state at most, so that it stays one: some 30 ms of work.
_MERGE_ROWS = 250_000
# Enough of it for merging to keep up with whatever a turn adds.
_MERGE_FACTOR = 10


class Memory(NamedTuple):
    """The ids that a unit remembers of a stream: a manifest, and the folder of its files."""

    folder: StateFolder
    runs: tuple[Run, ...]
    drop_before_us: int  # an id whose clock is before this can make no duplicate any more


@dataclass(frozen=True)
class Stepped:
    """What the step found in a stream: duplicates by partition, and the ids remembered then."""

    runs: tuple[Run, ...]
    duplicates: Mapping[int, OffsetSet] = field(default_factory=dict)


def remembered(
    manifests: Mapping[Operator, Manifest],
    step: Step,
    folder: StateFolder,
    progress: Mapping[StreamPartition, Progress],
) -> Memory:
    """Return what a step remembers as a turn begins, with the clocks it begins with.

    An id can be forgotten once every partition's clock is past its horizon: its own one's is then.
    """
    stream = step.operator.name
    clocks = [place.clock.time_us for key, place in progress.items() if key.stream == stream]
    smallest = min(clocks, default=NEVER)
    before_us = NEVER if smallest == NEVER else smallest - step.within_us
    return Memory(folder, manifests.get(step.operator, ()), before_us)


def step_rows(
    step: Step, memory: Memory, hasher: Hasher, rows: pa.Table, clocks: Clocks
) -> tuple[npt.NDArray[np.bool_], Stepped]:
    """Return which of a turn's rows are duplicates, and the same by place.

    `rows` have the id and the stamps, those of a partition in offset order. StoreError, DiskFull:
    then nothing that was written is left.
    """
    ids = rows[step.by].combine_chunks()
    partitions = rows["__partition"].combine_chunks()
    batch = Batch(*hasher.keys(partitions, ids), *clocks)
    state = State(memory.folder, memory.runs)
    found = deduplicate(state, batch, within_us=step.within_us)
    merge_rows = max(_MERGE_ROWS, _MERGE_FACTOR * found.entries.rows)
    runs = state.add(found.entries, drop_before_us=memory.drop_before_us, merge_rows=merge_rows)
    duplicates: dict[int, OffsetSet] = {}
    offsets, numbers = rows["__offset"].to_numpy(), partitions.to_numpy()
    for number in np.unique(numbers[found.duplicate]):
        here = offsets[found.duplicate & (numbers == number)]
        duplicates[int(number)] = OffsetSet.from_offsets(here)
    return found.duplicate, Stepped(runs, duplicates)
