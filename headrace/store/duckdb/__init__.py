"""The default store: tables and ledger in one DuckDB file. All of DuckDB's SQL is made here."""
