"""What the rows of a view are to their readers: names and types, of the key and of the columns."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from headrace.schema.types import DataType, parse_type

__all__ = ["Named", "Relation"]


class Named(NamedTuple):
    """A column of a relation."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Relation:
    """The parts of the rows' key, and their columns."""

    key: tuple[Named, ...]
    columns: tuple[Named, ...]

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
