"""Commands on the log: topics, records, groups, and the log's own care."""
