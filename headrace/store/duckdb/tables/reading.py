"""What readers see of a state table: the SQL behind a view's public name, and behind its errors."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from headrace.plan.tables import EVENTS, Table
from headrace.plan.terms import Cause
from headrace.schema.relations import distinct_names, error_name
from headrace.store.duckdb.expressions.failing import Asked, Names, ask
from headrace.store.duckdb.tables.finals import final_fails, final_text, items_fail, items_text
from headrace.store.duckdb.tables.names import GROUP, quote, watermark_of
from headrace.store.duckdb.tables.placing import Placing, placing_of
from headrace.time.clocks import NEVER

__all__ = ["Shown", "live", "shown_at", "shown_then"]

_SAID_CHARACTERS = 200  # of an expression, where an error names it


@dataclass(frozen=True)
class Shown:
    """A table as it is read: outputs, `_events` and `_closed`, from rows that a condition takes.

    A row on which an expression fails is not shown; `errors` says why. Which rows have left is as
    the ledger's W says, which rows are closed as `watermark`, SQL, does.
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
    def references(self) -> Mapping[str, str]:
        """SQL for every name that a term may refer to."""
        return self._names.texts

    @cached_property
    def _names(self) -> Names:
        texts = {column.name: column.name for column in self.table.columns}
        texts |= self.placing.references
        faults: dict[str, dict[Cause, str]] = {}
        for answer in self.table.answers:
            if answer.items is None:
                texts[answer.name] = final_text(answer, self.table)
                fault = final_fails(answer)
            else:
                items = self.table.child(answer.items)
                matches, combines = self.placing.item_matches(), self.placing.combines_items
                texts[answer.name] = items_text(answer, items, matches, combines=combines)
                fault = items_fail(answer, items, matches, combines=combines)
            if fault is not None:
                faults[answer.name] = {Cause.SUM: fault}
        for each in self.table.evaluated:
            texts[each.name] = f"struct_extract({each.name}, 'v')"
            # A sum that does not fit was handed to Spark as NULL.
            sums = [faults[name][Cause.SUM] for name, _ in each.inputs if name in faults]
            faults[each.name] = {Cause.SUM: " OR ".join(sums)} if sums else {}
            faults[each.name][Cause.OTHER] = f"{each.name} IS NULL"
        queries = frozenset(each.name for each in self.table.answers if each.items is not None)
        return Names(texts, faults, queries)

    @cached_property
    def _outputs(self) -> tuple[Asked, ...]:
        return tuple(ask(output.term, self._names) for output in self.table.outputs)

    @cached_property
    def _having(self) -> Asked | None:
        having = self.table.having
        return None if having is None else ask(having.term, self._names)

    @property
    def closed(self) -> str:
        """The column that says whether a row is closed."""
        return f"{self.placing.closed(self.watermark)} AS _closed"

    def parameters(self, watermark_us: int) -> dict[str, object]:
        """Return the parameters of `shown_then`, where W is this."""
        if "$watermark" not in self.closed:  # rows that close never, or at once
            return {}
        return {"watermark": None if watermark_us == NEVER else watermark_us}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What is selected."""
        asked = zip(self.table.outputs, self._outputs, strict=True)
        if self.table.placement.appends:
            outputs = [f"{each.value[1:-1]} AS {quote(output.name)}" for output, each in asked]
            return (*outputs, f"CAST(1 AS BIGINT) AS {EVENTS}", self.closed)
        outputs = [
            f"CAST({each.value} AS {output.type.duckdb}) AS {quote(output.name)}"
            for output, each in asked
        ]
        return (*outputs, EVENTS, self.closed)

    @cached_property
    def condition(self) -> str:
        """The WHERE clause of the rows that are shown; empty where all are."""
        conditions = [] if self._having is None else [self._having.value]
        conditions += [f"NOT {test}" for test in _all_tests([*self._conditions(), *self._outputs])]
        if len(conditions) == 1:
            return f" WHERE {conditions[0]}"
        return f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""

    def _conditions(self) -> list[Asked]:
        return [] if self._having is None else [self._having]

    @property
    def select(self) -> str:
        """The whole query."""
        return f"SELECT {', '.join(self.columns)} FROM {self._from}{self.condition}"

    @property
    def _from(self) -> str:
        return f"{self.source} AS {GROUP}" if self.table.children else self.source

    @property
    def errors(self) -> str:
        """The query for the rows on which an expression fails: their keys, and the error.

        HAVING is asked first, then the outputs in their order: the first that fails is told.
        """
        keys = distinct_names([part.name for part in self.table.key])
        columns = [
            f"{self.references[part.reference]} AS {quote(name)}"
            for part, name in zip(self.table.key, keys, strict=True)
        ]
        error = error_name(keys)
        said = list(self._said())
        if not said:
            none = ", ".join([*columns, f"CAST(NULL AS VARCHAR) AS {error}"])
            return f"SELECT {none} FROM {self._from} WHERE false"
        cases = " ".join(f"WHEN {test} THEN {_literal(text)}" for test, text in said)
        fails = " OR ".join(_all_tests(self._outputs))
        if self._having is not None:
            shown = f"({self._having.value}) AND ({fails})" if fails else "false"
            fails = " OR ".join([*_all_tests([self._having]), f"({shown})"])
        columns.append(f"CASE {cases} END AS {error}")
        return f"SELECT {', '.join(columns)} FROM {self._from} WHERE {fails}"

    def _said(self) -> Iterator[tuple[str, str]]:
        """Yield each test whether an expression fails, and what is said then."""
        having = self.table.having
        asked = [] if having is None else [("HAVING", having.said, self._having)]
        asked += [
            (output.name, output.said, each)
            for output, each in zip(self.table.outputs, self._outputs, strict=True)
        ]
        for name, said, each in asked:
            for cause, test in each.fails.items() if each is not None else ():
                short = said[:_SAID_CHARACTERS] + ("..." if len(said) > _SAID_CHARACTERS else "")
                yield test, f"{name}: {short} fails{f': {cause}' if cause else ''}"


def _all_tests(asked: Iterable[Asked]) -> list[str]:
    """Return all tests of expressions, each once."""
    return list(dict.fromkeys(test for each in asked for test in each.fails.values()))


def _literal(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


@lru_cache(maxsize=1024)
def live(table: Table) -> Shown:
    """Return a table as its readers see it at their position."""
    return Shown(table, watermark_of(table.view, table.version))


@lru_cache(maxsize=1024)
def shown_then(table: Table) -> Shown:
    """Return a table with its rows closed as they are when W is `$watermark`, in microseconds."""
    return Shown(table, "make_timestamptz(CAST($watermark AS BIGINT))")


def shown_at(table: Table, watermark_us: int) -> Shown:
    """Return a table with its rows closed as they are when W is this."""
    if watermark_us == NEVER:
        return Shown(table, "CAST(NULL AS TIMESTAMPTZ)")
    return Shown(table, f"make_timestamptz({watermark_us})")
