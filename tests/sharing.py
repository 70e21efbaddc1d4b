"""How the workers of a run share the test files.

Most files that run Spark in the test's own process go to one worker: its Spark is warm then, and
has the cores to itself while the other worker waits for Kafka and for processes. Two at once are
in each other's way. The files of LAST are left to the worker that is free first, to even out the
end. The tests of a file stay together, in either case.

xdist's own groups (`--dist loadgroup`) have no effect with pytest 9.
"""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

__all__ = ["BySpark", "rank"]

ROOT = Path(__file__).parent.parent
PROCESSES = "tests/cli/"  # a Spark in each of them, so that no warm one would help
LAST = ("tests/engine/test_transcripts.py", "tests/engine/test_v", "tests/engine/test_w")


@cache
def rank(file: str) -> int:
    """Return when a file is run: 0 for those of one worker, then the others, then the last."""
    path = ROOT / file
    if file.startswith(PROCESSES) or "pytest.mark.spark" not in path.read_text():
        return 1
    return 2 if file.startswith(LAST) else 0


class BySpark(LoadFileScheduling):
    """Hands out file by file, but the files of rank 0 together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return file if rank(file) else "spark"
