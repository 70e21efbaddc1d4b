"""The named fault points: places where a test, or an operator's drill, makes the world fail.

A fault point costs one dictionary look-up when nothing is armed. `arm` is for tests in one
process; the environment variable HEADRACE_FAULT arms a real process, which then ends itself with
SIGKILL: `HEADRACE_FAULT=after_stage` at the first pass, `after_stage:3` at the third.
"""

import os
import signal
from collections.abc import Callable

__all__ = ["POINTS", "Crash", "arm", "disarm", "reach"]

POINTS = {
    "after_plan": "turn step 1: the range is journalled, nothing was read",
    "after_read": "turn step 2: decoded, nothing stamped",
    "after_stamp": "turn step 3: stamped, nothing folded",
    "after_step": "turn step 4: duplicates are known, nothing names the new files of state",
    "after_fold": "turn step 5: the deltas are in memory",
    "after_stage": "turn step 6: staged, nothing visible",
    "before_commit": "turn step 7: inside the transaction, everything written, not committed",
    "after_commit": "turn step 7: committed, the engine does not know it yet",
    "before_publish": "turn step 8: committed, nothing of the outbox is in the log",
    "during_publish": "turn step 8: one entry is in the log, the ledger does not know it",
    "after_publish": "turn step 8: published and noted",
    "sink_before_append": "a turn's rows for a sink are committed, none is in its topic",
    "sink_after_append": "they are in the topic, the ledger does not know it yet",
    "stream_before_append": "the rows of a written stream are committed, none is in its topic",
    "stream_after_append": "they are in the topic, the ledger does not know it yet",
    "before_swap": "a new version is level, not yet swapped in",
    "state_before_rename": "a file of operator state is written and synced under another name",
    "log_torn": "an append wrote half a batch",
    "log_before_sync": "an append is written, not synced",
    "log_before_acknowledge": "an append is synced, not acknowledged",
    "log_in_transaction": "an append to several partitions has written one of them",
    "log_before_decision": "an append to several partitions is synced, not decided",
    "log_after_decision": "it is decided, nothing is acknowledged",
    "log_in_acknowledgement": "it is decided, one partition is acknowledged",
    "log_in_compaction": "a compacted segment is half written",
    "log_before_swap": "it is written and synced, the old segments still stand",
    "log_in_swap": "it stands in the place of the old ones, their files are still there",
    "log_before_removal": "retention has given up segments, their files are still there",
    "group_before_append": "a group's commit has checked its partitions, stored nothing",
    "group_after_append": "a group's commit is in the log, the member does not know it yet",
    "queue_after_take": "records are handed out in the book, the consumer does not have them yet",
    "queue_before_dead_letter": "a queue's record is marked dead, not yet in the dead-letter topic",
    "queue_after_dead_letter": "a dead letter is in its topic, the queue does not know it yet",
}


class Crash(BaseException):
    """What an armed fault point raises in a test: not an Exception, so nothing can swallow it."""


_armed: dict[str, Callable[[], None]] = {}


def arm(point: str, action: Callable[[], None] | None = None) -> None:
    """Make the next pass of `point` run `action`, once; without one, raise Crash."""
    if point not in POINTS:
        raise ValueError(f"no fault point {point!r}; there are: {', '.join(POINTS)}")

    def crash() -> None:
        raise Crash(point)

    _armed[point] = action or crash


def disarm() -> None:
    """Forget every armed fault point."""
    _armed.clear()


def reach(point: str) -> None:
    """Say that `point` is reached; does nothing unless it is armed."""
    if _armed and (action := _armed.pop(point, None)) is not None:
        action()


def _arm_from_environment(setting: str) -> None:
    point, _, passes = setting.partition(":")
    left = int(passes or 1)

    def count_down() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        _armed[point] = count_down

    arm(point, count_down)


if "HEADRACE_FAULT" in os.environ:
    _arm_from_environment(os.environ["HEADRACE_FAULT"])
