"""Look Java's names up once, not at every use.

For each part of `jvm.org.apache.spark...` py4j asks Java whether it is a class, and Java looks into
every jar of its path before it says no: 1 ms for `org`, and as much again for the parts behind it.
PySpark does so some hundred times to tell one failed job, which took longer than the job (2 cores).

Python finds an attribute before it asks, so what is looked up here is never asked again.
"""

from typing import Any

__all__ = ["look_up_names"]

#: By their whole names, part by part: what we use, and what py4j itself does to tell an error.
_CLASSES = (
    "com.google.common.primitives.Bytes",
    "java.lang.Class",
    "java.util.ArrayList",
    "org.apache.spark.api.java.JavaRDD",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.catalyst.expressions.TryEval",
    "org.apache.spark.sql.classic.ExpressionUtils",
    "py4j.reflection.TypeUtil",
    "scala.reflect.ClassTag",
)
#: As PySpark asks for them in every turn, in one piece.
_WHOLE = (
    "PythonErrorUtils",
    "PythonSQLUtils",
    "PythonUtils",
    "functions",
    "org.apache.spark.SparkFiles",
    "org.apache.spark.SparkThrowableHelper",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.util.Utils",
)


def look_up_names(jvm: Any) -> None:
    """Keep what the names stand for as attributes. A class that a release lacks is no matter."""
    for name in _WHOLE:
        setattr(jvm, name, getattr(jvm, name))
    for name in _CLASSES:
        holder = jvm
        for part in name.split("."):
            setattr(holder, part, getattr(holder, part))
            holder = getattr(holder, part)
    types = jvm.py4j.reflection.TypeUtil
    types.isInstanceOf = types.isInstanceOf
