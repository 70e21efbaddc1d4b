"""From definitions to what runs: frozen plans that the engine carries out and EXPLAIN prints."""
