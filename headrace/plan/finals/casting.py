"""Which casts mean the same everywhere."""

from headrace.schema.types import DataType

__all__ = ["cast_fault"]

_FRACTIONS = ("FLOAT", "DOUBLE")


def cast_fault(found: DataType, to: DataType) -> str | None:
    """Return why values of one type are not cast to another over aggregates; None: they are."""
    if found == to:
        return None
    if found.is_numeric and (to.is_numeric or to.kind == "BOOLEAN"):
        return None
    if found.kind == "BOOLEAN" and to.is_numeric:
        return None
    if to.kind == "STRING":
        if found.kind in _FRACTIONS:
            return f"{found.sql} is written in many ways"
        is_plain = found.is_integer or found.kind in ("BOOLEAN", "DECIMAL", "DATE", "TIMESTAMP")
        return None if is_plain else f"{found.sql} is not cast to STRING"
    if {found.kind, to.kind} == {"DATE", "TIMESTAMP"}:
        return None
    if found.kind == "TIMESTAMP" and to.kind in ("BIGINT", "DOUBLE"):
        return None
    if found.kind == "STRING":
        return "a text is not read as anything else"
    return f"{found.sql} is not cast to {to.sql}"
