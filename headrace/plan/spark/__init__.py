"""The Spark SQL that a turn runs."""
