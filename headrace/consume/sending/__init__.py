"""Producers with a buffer: records go in one by one, and are appended in batches."""
