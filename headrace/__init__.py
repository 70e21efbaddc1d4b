"""Event logs into live, correct tables, on Spark, from Python and SQL."""

__version__ = "0.1.0"
