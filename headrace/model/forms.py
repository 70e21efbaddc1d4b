"""Reading a kept form: JSON of a known shape, and one error with the place for everything else."""

from collections.abc import Callable
from typing import Any, TypeVar

from headrace.errors import DefinitionUnreadable

__all__ = ["Form", "said"]

Read = TypeVar("Read")


def said(**fields: object) -> dict[str, Any]:
    """Return the fields that say something: neither None, False nor empty."""
    return {
        name: value
        for name, value in fields.items()
        if not (value is None or value is False or value == [])  # 0 says something
    }


class Form:
    """One object of a form. All of its fields have to be read: `finish` refuses the others."""

    def __init__(self, value: object, place: str) -> None:
        self.place = place
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.refuse("is not an object")
        self._fields: dict[str, Any] = dict(value)

    def refuse(self, fault: str) -> DefinitionUnreadable:
        """Return the error that says what is wrong with this object."""
        return DefinitionUnreadable(
            f"a kept definition cannot be read: {self.place} {fault}. Start the release that wrote "
            "it; if that is this one, the ledger is damaged: restore it, or begin a new one and "
            "replay the log."
        )

    def text(self, name: str) -> str:
        """Return a text that has to be there."""
        found = self._fields.pop(name, None)
        if not isinstance(found, str):
            raise self.refuse(f"has no text {name!r}")
        return found

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None if nothing is said."""
        return self.text(name) if name in self._fields else None

    def number(self, name: str) -> int:
        """Return a whole number that has to be there."""
        found = self._fields.pop(name, None)
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.refuse(f"has no whole number {name!r}")
        return found

    def optional_number(self, name: str) -> int | None:
        """Return a whole number, or None if nothing is said."""
        return self.number(name) if name in self._fields else None

    def flag(self, name: str) -> bool:
        """Return whether something is said to be so."""
        found = self._fields.pop(name, False)
        if not isinstance(found, bool):
            raise self.refuse(f"does not say whether {name!r}")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; none if nothing is said."""
        found = self._fields.pop(name, [])
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self.refuse(f"has no list of texts {name!r}")
        return tuple(found)

    def steps(self, name: str) -> tuple[str | int, ...]:
        """Return a list of texts and whole numbers; none if nothing is said."""
        found = self._fields.pop(name, [])
        known = isinstance(found, list) and all(type(each) in (str, int) for each in found)
        if not known:
            raise self.refuse(f"has no list of texts and whole numbers {name!r}")
        return tuple(found)

    def one(self, name: str, read: Callable[["Form"], Read]) -> Read:
        """Return an object that has to be there, as `read` reads it."""
        inner = Form(self._fields.pop(name, None), f"{self.place}.{name}")
        found = read(inner)
        inner.finish()
        return found

    def optional(self, name: str, read: Callable[["Form"], Read]) -> Read | None:
        """Return an object as `read` reads it, or None if nothing is said."""
        return self.one(name, read) if name in self._fields else None

    def many(self, name: str, read: Callable[["Form"], Read]) -> tuple[Read, ...]:
        """Return a list of objects, each as `read` reads it; none if nothing is said."""
        found = self._fields.pop(name, [])
        if not isinstance(found, list):
            raise self.refuse(f"has no list {name!r}")
        inner = [Form(each, f"{self.place}.{name}[{at}]") for at, each in enumerate(found)]
        values = tuple(read(each) for each in inner)
        for each in inner:
            each.finish()
        return values

    def finish(self) -> None:
        """Refuse what was not read: it says something that this release does not know."""
        if self._fields:
            raise self.refuse(f"has the unknown field {next(iter(self._fields))!r}")
