"""Where tables and the ledger are kept, and made visible in one commit."""
