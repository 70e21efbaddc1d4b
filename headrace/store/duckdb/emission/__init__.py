"""How sinks learn of changes: images of rows before and after, and the rows to publish."""
