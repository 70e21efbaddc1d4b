"""An archive of the classes that Spark loads: Java need not read and verify them at every start.

Most of a short process is Java's start: with an archive it takes two thirds of the CPU. It is made
once for a Java and a PySpark, by a process that does what these processes do, and kept in the
cache. A Java that cannot make one, or finds it does not match, does without.
"""

import hashlib
import os
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path

from headrace.engine.spark.java import find_java_home
from headrace.log.embedded.files import locked

__all__ = ["class_archive"]

MAKE_TIMEOUT_S = 240
# A turn and an audit of a small project; its classes are those of every other one.
_WARM = """
from headrace.testing import harness
with harness('''
CREATE STREAM s (id STRING NOT NULL, n BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 1 SECOND) WITH (unique = 'id', unique_within = '1 hour');
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS start, count(*) AS n, sum(n) AS total FROM s GROUP BY window(ts, '1 minute');
''', partitions=2) as h:
    for gear in ("short", "long"):
        h.append("s", [{"id": gear, "n": 1, "ts": "2026-01-01T12:00:00Z"}, "{"])
        h.turn(gear=gear)
    h.audit()
"""


def class_archive(options: str) -> str:
    """Return Java's options with an archive, or as they were where there can be none."""
    home = find_java_home()
    spark = util.find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    # An archive holds for these very files: their paths, sizes and times.
    made_of = (home.resolve(), jars, jars.stat().st_mtime_ns, metadata.version("pyspark"), options)
    name = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("HEADRACE_CACHE") or Path.home() / ".cache" / "headrace")
    folder = cache / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"spark-{name}.jsa"
    with locked(folder / "lock"):  # of several workers one makes it
        if not archive.exists():
            try:
                _make(archive, options)
            except subprocess.SubprocessError as error:
                # What is broken here is broken in the tests too, and they tell it better.
                print(f"no archive of Spark's classes: {error}", file=sys.stderr)
                return options
    if not archive.stat().st_size:
        return options
    return f"{options} -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def _make(archive: Path, options: str) -> None:
    staging = archive.with_suffix(".making")
    staging.unlink(missing_ok=True)
    warm = f"{options} -XX:ArchiveClassesAtExit={staging} -Xlog:cds=off -Xlog:cds+dynamic=off"
    # Its pipes are closed when Java has ended too, which writes the archive last.
    subprocess.run(
        [sys.executable, "-c", _WARM],
        env={**os.environ, "SPARK_SUBMIT_OPTS": warm},
        capture_output=True,
        check=True,
        timeout=MAKE_TIMEOUT_S,
    )
    if not staging.exists():
        staging.touch()  # empty: this Java makes none, and is not asked again
    staging.replace(archive)
