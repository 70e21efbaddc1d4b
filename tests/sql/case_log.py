"""The log that all good cases read: some records of every stream, drawn from a fixed seed.

Times wander back and forth, so that some records are late. Some are dead, some are duplicates;
columns are null or missing, arrays are empty, structs lack fields.
"""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.testing.strategies import Append

__all__ = ["PARTITIONS", "draw_log"]

PARTITIONS = 2
_START = datetime(2026, 3, 1, 9, 58, tzinfo=UTC)
_DEAD = ["{", "[]", '{"ts": "soon"}', '{"id": "x"}', b"\xff", None]


def draw_log(seed: int = 13, *, records: int = 150) -> list[Append]:
    """Return records in the order of their arrival."""
    draw = random.Random(seed)
    streams = {
        "orders": _order,
        "clicks": _click,
        "notes": _note,
        "north": _north,
        "south": _south,
    }
    log: list[Append] = []
    clock = _START
    for number in range(records):
        clock += timedelta(milliseconds=draw.choice([0, 400, 2_000, 5_000, 9_500]))
        name = draw.choices(list(streams), weights=[6, 3, 2, 2, 2])[0]
        partition = draw.randrange(PARTITIONS)
        if draw.random() < 0.05:
            log.append(Append(name, partition, draw.choice(_DEAD), clock))
            continue
        behind = draw.choice([0, 0, 0, 0, 1, 4, 15, 45, 150])
        value = streams[name](draw, number)
        for column in list(value):
            if draw.random() < 0.08:
                value[column] = None
            elif draw.random() < 0.04:
                del value[column]
        value |= _always(name, number, clock - timedelta(seconds=behind))
        log.append(Append(name, partition, value, clock))
        if name == "clicks" and draw.random() < 0.25:
            log.append(Append(name, partition, value, clock))
    return log


def _always(name: str, number: int, event_time: datetime) -> dict[str, Any]:
    """Return the columns that are NOT NULL."""
    time = event_time.isoformat()
    match name:
        case "north":
            return {"order_id": f"n{number}", "at": time}
        case "south":
            return {"nr": number, "sold_at": time}
        case "notes":
            return {}
        case _:
            return {"id": f"{name[0]}{number}", "ts": time}


def _order(draw: random.Random, number: int) -> dict[str, Any]:
    lines = [
        {
            "sku": draw.choice(["tea", "cup", "pot", None]),
            "qty": draw.choice([1, 2, 3, None]),
            "price": draw.choice(["1.50", "20.00", None]),
        }
        for _ in range(draw.choice([0, 1, 1, 2, 3]))
    ]
    city = {"city": draw.choice(["Graz", "Linz", None]), "zip": draw.choice(["8010", "4020"])}
    body = {"a": {"b": draw.choice([1, "x", None])}, "list": [1, number, 3], "kind": "é"}
    return {
        "shop": draw.choice(["east", "west", "East", ""]),
        "qty": draw.choice([1, 2, 3, 7, -4] * 4 + [0]),
        "units": draw.choice([0, 5, 12, "40", 2**40]),
        "price": draw.choice(["0.00", "9.99", "12.50", "-3.10", 100]),
        "weight": draw.choice([0.25, -1.5, 3.0, 1e6]),
        "paid": draw.choice([True, False, "true"]),
        "day": draw.choice(["2026-02-28", "2026-03-01"]),
        "tags": draw.choice(
            [[], ["new"], ["new", "sale"], ["sale", "sale", None], ["b", "a", "c"]]
        ),
        "prices": draw.choice([{}, {"eur": 1.5}, {"eur": 2.0, "usd": 2.5}, {"gbp": None}]),
        "lines": [*lines, None] if draw.random() < 0.1 else lines,
        "buyer": {"name": draw.choice(["Ann", "bob", None]), "home": draw.choice([city, None])},
        "body": draw.choice([json.dumps(body), "no JSON", "12", "7.5"]),
        "shipped": draw.choice(["2026-03-01T12:00:00Z", "2026-03-02T23:59:59.5Z"]),
    }


def _click(draw: random.Random, number: int) -> dict[str, Any]:
    return {
        "user": draw.choice(["ann", "bob", "cleo"]),
        "page": draw.choice(["/", "/buy", "/buy?q=1", "/help"]),
        "ms": draw.choice([3, 20, 150, 900]),
    }


def _note(draw: random.Random, number: int) -> dict[str, Any]:
    return {
        "author": draw.choice(["ann", "bob"]),
        "text": draw.choice(["good tea", "bad  cup", "a,b,,c", " spaces ", ""]),
        "stars": draw.choice([1, 2, 3, 4, 5]),
    }


def _north(draw: random.Random, number: int) -> dict[str, Any]:
    return {"amount": draw.choice(["5.00", "7.25", "99.90"]), "items": draw.choice([1, 2, 3])}


def _south(draw: random.Random, number: int) -> dict[str, Any]:
    return {
        "total": draw.choice([1.25, 10.0, 33.5]),
        "items": draw.choice([1, 2, 9]),
        "coupon": draw.choice(["SPRING", "x"]),
    }
