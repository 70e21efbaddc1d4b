"""The outbox on its way to topics, files and databases."""
