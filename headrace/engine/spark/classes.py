"""An archive of the classes that Spark loads: Java need not read and verify them at every start.

With it Spark starts and answers in 6 seconds instead of 10 (Java 17, 2 cores). It holds for one
Java, one PySpark and one set of Java's options, and takes some 170 MB of the cache:

    ~/.cache/headrace/classes/spark-<digest>.jsa     empty where this Java makes none

`serve/archiving.py` makes it. A Java that finds that it does not match does without.
"""

import hashlib
from importlib import metadata, util
from pathlib import Path

from headrace.engine.spark.java import cache_folder, spark_java_home

__all__ = ["OPTIONS", "QUIET", "archive_of", "archived"]

#: The environment variable that Spark's launcher takes Java's options from.
OPTIONS = "SPARK_SUBMIT_OPTS"
#: Java says nothing about archives.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_ARCHIVE = "-XX:SharedArchiveFile"


def archived(options: str) -> str:
    """Return Java's options with the archive that holds for them, or as they were."""
    archive = archive_of(options)
    if archive is None or not archive.exists() or not archive.stat().st_size:
        return options
    return f"{options} {_ARCHIVE}={archive} {QUIET}".strip()


def archive_of(options: str) -> Path | None:
    """Return where the archive for these options is, or would be; None: they name one."""
    if _ARCHIVE in options:
        return None
    spark = util.find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    # An archive holds for these very files: their paths, sizes and times.
    made_of = (spark_java_home(), jars, jars.stat().st_mtime_ns, metadata.version("pyspark"))
    digest = hashlib.sha256(repr((*made_of, options)).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"spark-{digest}.jsa"
