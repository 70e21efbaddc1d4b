"""Keyed steps over columns, pure functions without Spark, and the state that they keep."""
