"""Words that the texts of all rooms share."""

__all__ = ["counted"]


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: 1 record, 2,000 records, 3 indexes."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
