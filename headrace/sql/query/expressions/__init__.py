"""Expressions of a query into scalars: their columns, functions, windows and aggregates."""
