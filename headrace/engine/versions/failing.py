"""Let a version stand still that cannot be swapped in."""

import logging
from dataclasses import replace

from headrace.engine.unit import Unit
from headrace.ledger.entries import HoldingState
from headrace.store.base import Store

__all__ = ["let_fail"]

logger = logging.getLogger("headrace.engine")


def let_fail(store: Store, epoch: int, unit: Unit, reason: str) -> None:
    """Let a unit stand still; the ledger says why. EngineFenced."""
    logger.warning("%s is not swapped in: %s", unit.name, reason)
    with store.open() as snapshot:
        failed = [
            replace(holding, state=HoldingState.FAILED, reason=reason)
            for holding in snapshot.holdings()
            if holding.kind == "view" and holding.unit == unit.name
        ]
    store.hold(epoch, failed, {})
    unit.state, unit.reason = HoldingState.FAILED, reason
