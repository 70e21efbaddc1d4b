"""Leave live turns a core: how many tasks a session's jobs may run at once, and in which pool.

Spark starts a task wherever a core is free and takes none back, so a replay whose tasks take
seconds would let a live turn wait for seconds. Fair sharing alone does not help: it only decides
who gets the next core that is free. So the jobs of a replay have one task fewer than there are
cores, and a pool of their own: what is waiting there does not stand before what is live.
"""

import threading

from pyspark.sql import DataFrame, SparkSession

__all__ = ["bounded", "leave_a_core", "use_pool"]

_TASKS = "headrace.tasks"
_POOL = "spark.scheduler.pool"
_pool_of_thread = threading.local()


def leave_a_core(session: SparkSession) -> None:
    """Let the jobs of a session, which is nobody else's, run on all cores but one."""
    most = str(max(1, session.sparkContext.defaultParallelism - 1))
    session.conf.set(_TASKS, most)
    session.conf.set("spark.sql.shuffle.partitions", most)


def bounded(frame: DataFrame) -> DataFrame:
    """Return a frame in as many tasks as its session may run; each does its parts one by one."""
    most = frame.sparkSession.conf.get(_TASKS, None)
    return frame if most is None else frame.coalesce(int(most))


def use_pool(spark: SparkSession, name: str | None) -> None:
    """Let the jobs that this thread starts wait in a pool of that name; None: the usual one."""
    if getattr(_pool_of_thread, "name", None) != name:
        spark.sparkContext.setLocalProperty(_POOL, name)  # type: ignore[arg-type]
        _pool_of_thread.name = name
