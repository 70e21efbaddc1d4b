"""A project on disk: its folder of definitions, `headrace.toml`, and its settings."""
