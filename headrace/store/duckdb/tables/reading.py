"""What readers see of a state table: the SQL behind a view's public name."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from headrace.plan.tables import EVENTS, Table
from headrace.store.duckdb.expressions.terms import term_text
from headrace.store.duckdb.tables.finals import final_text, items_text
from headrace.store.duckdb.tables.names import GROUP, quote, watermark_of
from headrace.store.duckdb.tables.placing import Placing, placing_of

__all__ = ["Shown", "live", "shown_at"]


@dataclass(frozen=True)
class Shown:
    """A table as it is read: outputs, `_events` and `_closed`, from rows that a condition takes.

    Which rows have left is as the ledger's W says, which rows are closed as `watermark`, SQL, does.
    """

    table: Table
    watermark: str

    @property
    def placing(self) -> Placing:
        """Where its rows stand."""
        return placing_of(self.table)

    @cached_property
    def source(self) -> str:
        """What the rows are read from."""
        return self.placing.source(self.table)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the source that tell rows apart."""
        return self.placing.keys(self.table)

    @cached_property
    def references(self) -> dict[str, str]:
        """SQL for every name that a term may refer to."""
        found = {column.name: column.name for column in self.table.columns}
        found |= self.placing.references
        for answer in self.table.answers:
            if answer.items is None:
                found[answer.name] = final_text(answer, self.table)
            else:
                items = self.table.child(answer.items)
                matches, combines = self.placing.item_matches(), self.placing.combines_items
                found[answer.name] = items_text(answer, items, matches, combines=combines)
        return found

    @property
    def closed(self) -> str:
        """The column that says whether a row is closed."""
        return f"{self.placing.closed(self.watermark)} AS _closed"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What is selected."""
        if self.table.placement.appends:
            outputs = [
                f"{term_text(output.term, self.references)[1:-1]} AS {quote(output.name)}"
                for output in self.table.outputs
            ]
            return (*outputs, f"CAST(1 AS BIGINT) AS {EVENTS}", self.closed)
        references = self.references
        outputs = [
            f"CAST({term_text(output.term, references)} AS {output.type.duckdb}) "
            f"AS {quote(output.name)}"
            for output in self.table.outputs
        ]
        return (*outputs, EVENTS, self.closed)

    @cached_property
    def condition(self) -> str:
        """The WHERE clause of the rows that are shown; empty where all are."""
        if self.table.having is None:
            return ""
        return f" WHERE {term_text(self.table.having, self.references)}"

    @property
    def select(self) -> str:
        """The whole query."""
        source = f"{self.source} AS {GROUP}" if self.table.children else self.source
        return f"SELECT {', '.join(self.columns)} FROM {source}{self.condition}"


@lru_cache(maxsize=1024)
def live(table: Table) -> Shown:
    """Return a table as its readers see it at their position."""
    return Shown(table, watermark_of(table.view, table.version))


def shown_at(table: Table, watermark_us: int) -> Shown:
    """Return a table with its rows closed as they are when W is this."""
    return Shown(table, f"make_timestamptz({watermark_us})")
