"""State tables in DuckDB: what the words of a plan mean here, merged, read and compared."""
