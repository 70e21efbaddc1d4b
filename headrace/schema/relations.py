"""What the rows of a view are to their readers: names and types, of the key and of the columns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.schema.types import DataType, parse_type

__all__ = ["Named", "Relation", "distinct_names", "error_name"]


class Named(NamedTuple):
    """A column of a relation."""

    name: str
    type: DataType


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names that differ; a key that is not selected may have the name of another."""
    found: list[str] = []
    for name in names:
        while name.lower() in map(str.lower, found):
            name += "_"
        found.append(name)
    return found


def error_name(keys: Sequence[str]) -> str:
    """Return the name of the column that says why a row failed, beside those of its key."""
    return "_error" if "error" in map(str.lower, keys) else "error"


@dataclass(frozen=True)
class Relation:
    """The parts of the rows' key, and their columns."""

    key: tuple[Named, ...]
    columns: tuple[Named, ...]

    @property
    def errors(self) -> tuple[Named, ...]:
        """The columns of the rows that failed: their key, and why."""
        names = distinct_names([each.name for each in self.key])
        keys = (Named(name, each.type) for name, each in zip(names, self.key, strict=True))
        return (*keys, Named(error_name(names), DataType("STRING")))

    def to_json(self) -> str:
        """Return it as text, for the ledger."""
        parts = (self.key, self.columns)
        return json.dumps([[[each.name, each.type.sql] for each in part] for part in parts])

    @classmethod
    def from_json(cls, text: str) -> "Relation":
        """Return what `to_json` wrote."""
        key, columns = (
            tuple(Named(name, parse_type(type)) for name, type in part) for part in json.loads(text)
        )
        return cls(key, columns)
