"""Say in one sentence why Spark failed, and whether it blames a value.

PySpark tells some errors of a task as exceptions of its own, and others as the bare news that a
call has failed; then the reason is among the causes on Java's side.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

__all__ = ["SPARK_ERRORS", "Explained", "SparkError", "explain", "is_too_large"]

#: What work that is handed to Spark may raise.
SparkError: TypeAlias = PySparkException | Py4JJavaError
SPARK_ERRORS = (PySparkException, Py4JJavaError)

# SQLSTATE classes of errors that a value causes: data exceptions, and raise_error().
_OF_VALUES = ("22", "P0001")


# SQLSTATE classes of trouble with connections, resources, operators and the system itself.
_OF_MACHINES = ("08", "53", "57", "58", "XX")


class Explained(NamedTuple):
    """Why Spark failed, and the SQLSTATE that it gives, if it gives one."""

    sentence: str
    state: str | None

    @property
    def of_value(self) -> bool:
        """Whether a value is at fault, and nothing else can be.

        Otherwise nothing is said: an expression may fail on a value with a state of another class,
        or with any exception of Java's.
        """
        return self.state is not None and self.state.startswith(_OF_VALUES)

    @property
    def of_machine(self) -> bool:
        """Whether memory, disk, network or Spark itself is at fault, and no value can be."""
        return self.state is not None and self.state.startswith(_OF_MACHINES)


def is_too_large(error: SparkError) -> bool:
    """Whether a job gave more rows than the driver takes; Spark has no SQLSTATE for it."""
    return "spark.driver.maxResultSize" in str(error)


def explain(error: SparkError) -> Explained:
    """Return why Spark failed."""
    if isinstance(error, PySparkException):
        return _explained(error.getMessage() or str(error), error.getSqlState(), error)
    causes = list(_causes(error.java_exception))
    for cause in causes:
        if is_instance_of(SparkContext._gateway, cause, "org.apache.spark.SparkThrowable"):
            state = cause.getSqlState()
            if state is not None:
                return _explained(cause.getMessage(), state, error)
    root = causes[-1]
    kind = root.getClass().getSimpleName()
    message = (root.getMessage() or "").strip()
    return _explained(f"{kind}: {message}" if message else kind, None, error)


def _causes(java: Any) -> Iterator[Any]:
    while java is not None:
        yield java
        java = java.getCause()


def _explained(message: str | None, state: str | None, error: Exception) -> Explained:
    lines = (message or "").strip().splitlines() or [type(error).__name__]
    # Spark's advice to turn its checks off would break promise 2.
    sentence = re.sub(r" If necessary set \S+ to \S+ to bypass this error\.", "", lines[0])
    sentence = sentence.removeprefix("[USER_RAISED_EXCEPTION] ")
    return Explained(sentence, state)
