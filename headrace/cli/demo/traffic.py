"""Shop traffic: page views and card payments from phones, the same for the same seed.

- Phones send out of order, by seconds.
- Some were in a tunnel and send what they kept, minutes late.
- About one in two hundred cannot be read: half a JSON text, an amount that is none.
- Now and then a card is used many times within seconds, and in several countries.
- Before some payments their buyer looked at a few pages.
Times are relative to the start, so that a seed gives the same payments whenever it runs; event
times follow the wall clock, so that windows open and close before one's eyes.
"""

import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from headrace.log import Log, records

__all__ = ["COUNTRIES", "SHOPS", "Payment", "Traffic", "View", "payments"]

COUNTRIES = ("AT", "CH", "DE", "FR", "IT", "NL")
SHOPS = (
    *("Alpenglow", "Brass & Oak", "Citrine", "Dune", "Emberline", "Fernway", "Gullwing"),
    *("Harbour", "Inkwell", "Juniper", "Kestrel", "Lantern", "Millrace", "Northbound"),
)
PAGES = ("/", "/search", "/shoes", "/coats", "/sale", "/cart", "/help")
_CARDS = 5_000
_SECOND_US = 1_000_000
_TUNNEL_SHARE = 0.002  # of payments, one after which a phone comes out of a tunnel
_BROKEN_SHARE = 0.005
_STOLEN_SHARE = 0.0005  # of payments, one after which its card is used again and again
_VISIT_SHARE = 0.1  # of payments, those before which pages were looked at
_TICK_SECONDS = 0.05
_MAX_BATCH_RECORDS = 5_000


class Payment(NamedTuple):
    """One record to be: when it is sent and when it happened, in microseconds from the start."""

    sent_us: int
    event_us: int
    id: str
    card: str
    country: str
    shop: str
    cents: int
    fault: str = ""

    @property
    def key(self) -> str:
        """What decides the partition."""
        return self.card

    def to_bytes(self, start_us: int) -> bytes:
        """Return the record as a phone sends it, if the traffic started then."""
        amount = f"{self.cents // 100}.{self.cents % 100:02d}"
        text = json.dumps(
            {
                "id": self.id,
                "card": self.card,
                "amount": f"{amount}.{amount}" if self.fault == "amount" else amount,
                "country": self.country,
                "shop": self.shop,
                "ts": _time(start_us + self.event_us),
            }
        )
        return (text[: len(text) // 2] if self.fault == "cut" else text).encode()


class View(NamedTuple):
    """Somebody looked at a page."""

    sent_us: int
    event_us: int
    visitor: str
    page: str

    @property
    def key(self) -> str:
        """What decides the partition."""
        return self.visitor

    def to_bytes(self, start_us: int) -> bytes:
        """Return the record as a phone sends it, if the traffic started then."""
        time = _time(start_us + self.event_us)
        return json.dumps({"visitor": self.visitor, "page": self.page, "ts": time}).encode()


def _time(time_us: int) -> str:
    moment = datetime.fromtimestamp(time_us / _SECOND_US, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def payments(seed: int, rate: int) -> Iterator[Payment | View]:
    """Yield records in the order they are sent, `rate` payments a second; it never ends."""
    chance = random.Random(seed)
    homes = [chance.choices(COUNTRIES, weights=(1, 1, 4, 3, 2, 1))[0] for _ in range(_CARDS)]
    numbers = itertools.count()
    popular = [1 / (place + 1) for place in range(len(SHOPS))]

    def payment(
        sent_us: int, event_us: int, card: int, fault: str = "", country: str = ""
    ) -> Payment:
        cents = min(int(chance.lognormvariate(7.5, 1.0)), 999_999)
        name, shop = f"{seed}-{next(numbers)}", chance.choices(SHOPS, weights=popular)[0]
        country = country or homes[card]
        return Payment(sent_us, event_us, name, f"card-{card:04d}", country, shop, cents, fault)

    for tick in itertools.count():
        sent_us = tick * _SECOND_US // rate
        card = chance.randrange(_CARDS)
        fault = chance.choice(("cut", "amount")) if chance.random() < _BROKEN_SHARE else ""
        delay_us = int(min(chance.expovariate(1.0), 8.0) * _SECOND_US)
        if chance.random() < _VISIT_SHARE:
            for step in range(chance.randint(2, 6), 0, -1):
                looked_us = sent_us - delay_us - step * chance.randrange(_SECOND_US, 6 * _SECOND_US)
                yield View(sent_us, looked_us, f"visitor-{card:04d}", chance.choice(PAGES))
        yield payment(sent_us, sent_us - delay_us, card, fault)
        if chance.random() < _STOLEN_SHARE:
            for _ in range(chance.randint(6, 12)):
                used_us = sent_us - chance.randrange(5 * _SECOND_US)
                yield payment(sent_us, used_us, card, country=chance.choice(COUNTRIES))
        if chance.random() < _TUNNEL_SHARE:
            begin_us = sent_us - chance.randrange(120, 420) * _SECOND_US
            kept = sorted(chance.uniform(begin_us, sent_us) for _ in range(chance.randint(3, 10)))
            for event_us in kept:
                yield payment(sent_us, int(event_us), card)


class Traffic(threading.Thread):
    """Appends records as their time comes. `appended` counts payments; `failure` ends it."""

    def __init__(self, log: Log, *, seed: int, rate: int) -> None:
        super().__init__(name="traffic", daemon=True)
        self._log = log
        self._payments = payments(seed, rate)
        self._stop_event = threading.Event()
        self.appended = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        """Append until told to stop."""
        try:
            self._append_all()
        except Exception as error:  # noqa: BLE001 - whoever started the traffic raises it
            self.failure = error

    def _append_all(self) -> None:
        start_us = time.time_ns() // 1000
        start = time.monotonic()
        upcoming = next(self._payments)
        while not self._stop_event.wait(_TICK_SECONDS):
            now_us = int((time.monotonic() - start) * _SECOND_US)
            due: list[Payment | View] = []
            while upcoming.sent_us <= now_us and len(due) < _MAX_BATCH_RECORDS:
                due.append(upcoming)
                upcoming = next(self._payments)
            for kind, topic in ((Payment, "payments"), (View, "page_views")):
                sent = [each for each in due if isinstance(each, kind)]
                if sent:
                    values = [each.to_bytes(start_us) for each in sent]
                    table = records(values, keys=[each.key for each in sent])
                    self._log.append(topic, table)
                    self.appended += len(sent) if kind is Payment else 0

    def stop(self) -> None:
        """End after the batch under way."""
        self._stop_event.set()
        self.join()
