"""Remove what crashes left behind: files of state that no manifest names."""

import logging
from collections.abc import Iterable

from headrace.engine.unit import Unit
from headrace.operators.state import StateFolder
from headrace.wording import counted

__all__ = ["sweep_state"]

logger = logging.getLogger("headrace.engine")


def sweep_state(folder: StateFolder, units: Iterable[Unit]) -> None:
    """Remove the files that none of these units names."""
    named = {run.file for unit in units for runs in unit.manifests.values() for run in runs}
    if orphans := folder.sweep(named):
        logger.info("removed %s of state that nothing names", counted(len(orphans), "file"))
