"""A table of cards, and its rows as tests compare them."""

from typing import Any

from headrace.testing import Harness

__all__ = ["CARDS", "card", "rows"]

CARDS = """
CREATE TABLE cards (
  card STRING PRIMARY KEY, holder STRING, tier STRING NOT NULL, spent DECIMAL(10,2)
) WITH (topic = 'cards', format = 'upsert');
"""


def card(card: str, holder: str | None, tier: str, spent: object = None) -> dict[str, object]:
    return {"card": card, "holder": holder, "tier": tier, "spent": spent}


def rows(h: Harness) -> dict[str, tuple[Any, ...]]:
    found = {row.pop("card"): tuple(row.values()) for row in h.rows("cards")}
    return dict(sorted(found.items()))
