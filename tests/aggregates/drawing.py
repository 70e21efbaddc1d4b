"""Random records, cut at random into parts many times over, as the aggregates' laws need them."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from columns import COLUMNS, column_type, draw_columns
from soaking import SOAKING, seeded, times

from headrace.aggregates import TIEBREAK
from headrace.engine.spark.session import start_spark

__all__ = ["CUTS", "RECORDS", "Drawn", "column_name", "draw", "interpreting_session"]

RECORDS = 40
CUTS = times(20, soaked=60)


@dataclass(frozen=True)
class Drawn:
    """The records: their columns and where they stand; and the part each is in, per cut."""

    columns: dict[str, list[Any]]
    places: list[tuple[int, int, int]]
    parts: list[list[int]]

    def table(self) -> pa.Table:
        """Return the records with `place`, and with `parts`, the part of each in every cut."""
        arrays = {
            column_name(name): pa.array(self.columns[name], column_type(name).arrow)
            for name in COLUMNS
        }
        fields = [pa.array(each) for each in zip(*self.places, strict=True)]
        types = [part.arrow for part in TIEBREAK.parts]
        arrays["tiebreak"] = pa.StructArray.from_arrays(
            [field.cast(type) for field, type in zip(fields, types, strict=True)], TIEBREAK.names
        )
        arrays["parts"] = pa.array([list(each) for each in zip(*self.parts, strict=True)])
        return pa.table(arrays)


def column_name(name: str) -> str:
    """Return what a column is called in `Drawn.table`."""
    return f"c{list(COLUMNS).index(name)}"


def interpreting_session() -> Any:
    """Return a session of Spark that evaluates expressions without compiling them first.

    To compile hundreds of them takes several times as long as to evaluate them here. A soak, with
    its many cuts, compiles them.
    """
    session = start_spark().newSession()
    # Compiling one query of two hundred columns takes longer than running it, in a soak too.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    if not SOAKING:
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def draw(seed: int, *, most_parts: int) -> Drawn:
    """Draw records and their cuts into up to so many parts."""
    rng = seeded(seed)
    columns = draw_columns(rng, RECORDS)
    offsets = list(range(RECORDS))
    rng.shuffle(offsets)
    # Few times, so that partitions and offsets decide too.
    places = [(rng.randint(-2, 2), rng.randint(0, 1), offset) for offset in offsets]
    parts = []
    for _ in range(CUTS):
        count = rng.randint(1, most_parts)
        # Every other cut keeps the order of the records, so that some parts hold only large ones.
        in_order = rng.random() < 0.5
        names = rng.sample(range(count), count)
        parts.append(
            [
                names[i * count // RECORDS if in_order else rng.randrange(count)]
                for i in range(RECORDS)
            ]
        )
    return Drawn(columns, places, parts)
