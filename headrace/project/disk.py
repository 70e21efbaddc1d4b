"""The definitions of a folder, read again when its files change."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import DefinitionError, UsageError
from headrace.project.config import FILE, Config, read_config
from headrace.project.folder import read_definitions
from headrace.project.sources import definition_files

if TYPE_CHECKING:
    from headrace.model.definitions import Project

__all__ = ["Disk", "Signature"]

#: Names, times, sizes and identities of all files that decide what a project says.
Signature = tuple[tuple[str, int, int, int], ...]


class Disk:
    """A project's files. Any thread may ask; unchanged files are parsed once."""

    def __init__(self, config: Config) -> None:
        self.config = config  # as it was when the project was opened
        self._lock = threading.Lock()
        self._read: tuple[Signature, Project | DefinitionError] | None = None

    def signature(self) -> Signature:
        """Return what changes when a file is edited, added or removed."""
        folder = self.config.folder
        found = []
        for file in [folder / FILE, *definition_files(folder)]:
            try:
                status = file.stat()
            except OSError:
                found.append((file.name, 0, 0, 0))  # gone, or not readable: a link to nothing
                continue
            found.append((file.name, status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)

    def definitions(self) -> "Project":
        """Return what the files define now. DefinitionError: they are refused."""
        with self._lock:
            signature = self.signature()
            if self._read is None or self._read[0] != signature:
                self._read = (signature, _read_or_error(self.config.folder))
            found = self._read[1]
        if isinstance(found, DefinitionError):
            raise DefinitionError(found.problems)
        return found

    def refuse(self, definitions: "Project", error: DefinitionError) -> None:
        """Take note that Spark refused definitions that were read here.

        Until the files change, `definitions` refuses them for the same reasons.
        """
        with self._lock:
            if self._read is not None and self._read[1] is definitions:
                self._read = (self._read[0], error)

    def config_differs(self) -> bool:
        """Tell whether headrace.toml says something else than when the project was opened."""
        try:
            return read_config(self.config.folder) != self.config
        except (DefinitionError, UsageError):
            return True


def _read_or_error(folder: Path) -> "Project | DefinitionError":
    try:
        return read_definitions(folder)
    except DefinitionError as error:
        return error
