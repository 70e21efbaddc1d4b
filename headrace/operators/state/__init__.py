"""State of keyed operators: immutable runs, sorted by hash, in files that the ledger names."""

from headrace.operators.state.entries import SHARDS, Entries, Keys, Shards
from headrace.operators.state.folder import Run, StateFolder
from headrace.operators.state.hashing import Hasher
from headrace.operators.state.tiers import State, join_runs

__all__ = [
    "SHARDS",
    "Entries",
    "Hasher",
    "Keys",
    "Run",
    "Shards",
    "State",
    "StateFolder",
    "join_runs",
]
