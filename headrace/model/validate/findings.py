"""The problems of one definition, as they are found."""

from collections.abc import Mapping

from headrace.errors import Location, Problem
from headrace.model.names import name_fault

__all__ = ["Findings", "Locations"]

#: Subject to location: `name`, `topic`, `column 0`, `output 0`, `watermark` or an option's name.
Locations = Mapping[str, Location]


class Findings:
    """Problems of a definition; `locations` says where its parts stand."""

    def __init__(self, location: Location, locations: Locations | None) -> None:
        self.location = location
        self.locations = locations or {}
        self.problems: list[Problem] = []

    def add(self, subject: str, message: str | None) -> None:
        """Note what is wrong with a part, if a message says so."""
        if message is not None:
            self.problems.append(Problem(self.locations.get(subject, self.location), message))

    def add_names(self, kind: str, names: list[str]) -> None:
        """Note what is wrong with the names of columns or outputs, and which occur twice."""
        seen: set[str] = set()
        for index, name in enumerate(names):
            self.add(f"{kind} {index}", name_fault(kind, name))
            if name.lower() in seen:
                self.add(
                    f"{kind} {index}",
                    f"{kind} {name} occurs twice (names are not case-sensitive); rename one",
                )
            seen.add(name.lower())
