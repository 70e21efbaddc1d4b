"""A small project and its records, for the engine's tests."""

from datetime import UTC, datetime, timedelta

STREAM = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING, amount DECIMAL(12,2), n BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS
) WITH (topic = 'payments', format = 'json');
"""
PER_MINUTE = """
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, card, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 minute'), card;
"""
RATIOS = """
CREATE MATERIALIZED VIEW ratios AS SELECT id, 100 / n AS share FROM payments;
"""
SHOP = STREAM + PER_MINUTE + RATIOS
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def payments(start: int, count: int) -> list[object]:
    """Return payments, one a second: every 10th late, every 11th dead, number 5 failing."""
    found: list[object] = []
    for number in range(start, start + count):
        time = NOON + timedelta(seconds=number)
        if number % 10 == 9:
            time -= timedelta(minutes=5)
        if number % 11 == 7:
            found.append(f"broken {number}")
            continue
        n = 0 if number == 5 else number
        card = f"c{number % 3}"
        amount = f"{number}.25"
        found.append({"id": str(number), "card": card, "amount": amount, "n": n, "ts": time})
    return found
