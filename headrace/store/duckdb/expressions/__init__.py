"""Expressions over merged values: terms as DuckDB's SQL."""
