"""What can be set about turns. Every buffer of the engine has its bound here."""

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """The bounds and targets of turns; `[engine]` in headrace.toml."""

    target_ms: int = 100  # how long a live turn should take
    max_turn_records: int = 4_000_000
    max_turn_bytes: int = 1 << 30  # read by tasks as a stream, never held as a whole
    short_turn_records: int = 50_000  # above it, Spark tasks read the log themselves
    short_turn_bytes: int = 64 << 20  # what the driver reads into its own memory
    max_delta_bytes: int = 256 << 20  # that a turn's views make; the driver and the commit hold it
    split_records: int = 250_000  # of a long turn, per task
    seed_records: int = 250_000  # a clock is saved about this often, for later replays
    poll_ms: int = 1_000  # between looks at a log that tells of nothing new
    changes_retention_commits: int = 10_000  # that a reader of a view's changes may be behind
    changes_retention_mb: int = 256  # or so many megabytes of changes, of each view
    probe_jobs: int = 40  # to find records an expression fails on, per view and shared turn
    split_folds: int = 1  # the test harness folds every turn in several parts
