"""How fast JSON records become typed columns, on one core: `python bench/decode.py`.

Prints our decoder beside DuckDB's json_transform alone, which checks nothing, then the strict
path, and what one small batch costs.
"""

import time
from collections.abc import Callable

import duckdb
import pyarrow as pa

from headrace.schema import Column, JsonDecoder, parse_type
from headrace.schema.json_strict import decode_strict

RECORDS = 400_000
STRICT_RECORDS = 20_000
SMALL_BATCH_RECORDS = 2_500
REPEATS = 3
COLUMNS = [
    Column("id", parse_type("STRING"), nullable=False),
    Column("card", parse_type("STRING"), nullable=False),
    Column("amount", parse_type("DECIMAL(12,2)")),
    Column("country", parse_type("STRING")),
    Column("ts", parse_type("TIMESTAMP"), nullable=False),
]
STRUCTURE = (
    '{"id":"VARCHAR","card":"VARCHAR","amount":"DECIMAL(12,2)",'
    '"country":"VARCHAR","ts":"TIMESTAMPTZ"}'
)


def make_record(number: int) -> bytes:
    return (
        f'{{"id":"e{number}","card":"c{number * 7919 % 100_003}",'
        f'"amount":{number * 31 % 1000}.{number % 100:02d},"country":"DE",'
        f'"ts":"2026-01-{number % 28 + 1:02d}T{number % 24:02d}:00:00.{number % 1000:03d}Z"}}'
    ).encode()


def fastest_seconds(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    values = pa.array([make_record(number) for number in range(RECORDS)], pa.binary())
    table = pa.table({"value": values.cast(pa.string())})
    connection = duckdb.connect(config={"threads": 1})
    decoder = JsonDecoder(COLUMNS)

    def transform() -> None:
        projection = f"unnest(json_transform(value, '{STRUCTURE}'))"
        connection.from_arrow(table).project(projection).to_arrow_table()

    def decode_strictly() -> None:
        for value in values.slice(0, STRICT_RECORDS).to_pylist():
            decode_strict(COLUMNS, value)

    decoder_rate = RECORDS / fastest_seconds(lambda: decoder.decode(values))
    transform_rate = RECORDS / fastest_seconds(transform)
    strict_rate = STRICT_RECORDS / fastest_seconds(decode_strictly)
    small = values.slice(0, SMALL_BATCH_RECORDS)
    small_ms = fastest_seconds(lambda: decoder.decode(small)) * 1000
    assert decoder.strict_count == 0
    print(f"JsonDecoder             {decoder_rate:>12,.0f} records/s")
    print(f"json_transform alone    {transform_rate:>12,.0f} records/s")
    print(f"ratio                   {decoder_rate / transform_rate:>12.2f}")
    print(f"strict path             {strict_rate:>12,.0f} records/s")
    print(f"{SMALL_BATCH_RECORDS:,} records           {small_ms:>12.1f} ms")


if __name__ == "__main__":
    main()
