"""The outbox, and the rows of sinks, on their way to topics."""
