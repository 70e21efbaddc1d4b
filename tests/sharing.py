"""How the workers of a run share the test files.

Half of the files that run Spark in the test's own process go to one worker, whose Spark is warm
then, while the others wait for Kafka and for processes. The files of LAST, which run Spark too, are
left to the workers that are free first, to even out the end. The tests of a file stay together, in
either case.

xdist's own groups (`--dist loadgroup`) have no effect with pytest 9.
"""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

__all__ = ["BySpark", "rank"]

ROOT = Path(__file__).parent.parent
#: A Spark in each process, so that no warm one would help; or they wait for Kafka.
WAITING = ("tests/cli/", "tests/engine/test_on_kafka.py")
LAST = ("tests/sql/", *(f"tests/engine/test_{letter}" for letter in "stuvw"))
#: Of those, the ones that take a minute go first, else one worker is still at one in the end.
LONG = (
    "tests/sql/test_cases.py",
    *(f"tests/engine/test_{name}.py" for name in ("sinks", "transcripts", "unique", "versions")),
)


@cache
def rank(file: str) -> int:
    """Return when a file is run: 0 for those of one worker, then the others, then the last."""
    path = ROOT / file
    if file.startswith(WAITING) or "pytest.mark.spark" not in path.read_text():
        return 1
    if file in LONG:
        return 2
    return 3 if file.startswith(LAST) else 0


class BySpark(LoadFileScheduling):
    """Hands out file by file, but the files of rank 0 together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return file if rank(file) else "spark"
