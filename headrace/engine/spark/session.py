"""Start the Spark session that turns run in."""

import logging
import os
import sys
from collections.abc import Mapping
from importlib import resources

from pyspark.sql import SparkSession

from headrace.engine.spark.acknowledging import acknowledge_at_once
from headrace.engine.spark.classes import OPTIONS, archived
from headrace.engine.spark.java import spark_java_home
from headrace.engine.spark.lookups import look_up_names
from headrace.errors import EngineError

__all__ = ["start_spark"]

_SETTINGS = {
    "spark.app.name": "headrace",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Of one job. Past it Spark ends the job instead of running out of memory, and the turn is
    # taken in smaller ones.
    "spark.driver.maxResultSize": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0",
    # A turn is one small job: a shuffle over 200 partitions or a replan would cost more than it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Over TCP each Python task stalls for 40 ms, as answers of Java do (acknowledging.py).
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # A task takes a turn's rows as Arrow, not as rows that the driver unpacked and serialised.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # A turn's plan is new each time; keeping finished ones would only fill memory.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.codegen.cache.maxEntries": "1000",
    # PySpark would record the Python line of each column for its messages, which we do not show.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


def start_spark(
    *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the session this process has. JavaMissing, EngineError."""
    # As getOrCreate would, which sets all settings anew: 25 ms.
    running = SparkSession._instantiatedSession
    if running is not None and running._sc._jsc is not None and not settings:
        return running
    acknowledge_at_once()
    # PySpark logs every failed query with its stack trace; a failed record is no news here.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    logging.getLogger("py4j").setLevel(logging.WARNING)
    os.environ["JAVA_HOME"] = str(spark_java_home())
    os.environ[OPTIONS] = archived(os.environ.get(OPTIONS, ""))
    # Without it workers use whatever python3 is on PATH, which lacks our packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    quiet = resources.files("headrace.engine.spark") / "log4j2.properties"
    cores = os.cpu_count() or 1
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
    builder = builder.config("spark.sql.shuffle.partitions", str(cores))
    for name, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
        look_up_names(session._jvm)
    except Exception as error:
        raise EngineError(
            f"Spark does not start: {error}. JAVA_HOME is {os.environ['JAVA_HOME']}; see "
            f"[spark] in headrace.toml for its settings."
        ) from error
    return session
