"""Names that definitions read although they are not defined: who reads each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.errors import Problem

__all__ = ["Unknown"]

_SHOWN = 5  # readers that a message lists; more are counted


@dataclass
class Unknown:
    """What is noted while definitions are bound, and said when all of them are."""

    readers: dict[str, dict[str, None]] = field(default_factory=dict)  # by name in lower case
    names: dict[Problem, str] = field(default_factory=dict)

    def note(self, reader: str, missing: Mapping[str, Sequence[Problem]]) -> None:
        """Note the problems of a definition with names that it reads, by name."""
        for name, problems in missing.items():
            self.readers.setdefault(name, {})[reader] = None
            self.names |= dict.fromkeys(problems, name)

    def tell(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems, where several definitions read a name with how many and which."""
        return [self._told(problem) for problem in problems]

    def _told(self, problem: Problem) -> Problem:
        readers = list(self.readers.get(self.names.get(problem, ""), ()))
        if len(readers) < 2:
            return problem  # its place says which
        shown = ", ".join(readers[:_SHOWN])
        more = f" and {len(readers) - _SHOWN:,} more" if len(readers) > _SHOWN else ""
        message = f"{problem.message}; {len(readers):,} definitions read it: {shown}{more}"
        return replace(problem, message=message)
