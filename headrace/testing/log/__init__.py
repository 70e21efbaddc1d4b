"""The contract suite of the log, run on every implementation."""
