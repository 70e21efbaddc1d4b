"""The contract suite of the store, run on every implementation."""
