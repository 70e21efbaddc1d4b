"""The state table of a view: its columns, what its aggregates answer, what readers see of it."""

from collections.abc import Collection, Mapping

from headrace.aggregates import Aggregate
from headrace.aggregates.words import Merge
from headrace.model.definitions import View
from headrace.model.graph import condition_place, group_place
from headrace.model.nodes import key_column
from headrace.model.sinks import key_parts
from headrace.model.table_views import NEWEST_CALL
from headrace.plan.finals import Names, names_in, say, to_term, typed_parts
from headrace.plan.refusals import refuse
from headrace.plan.shape import WINDOW_NAMES, Key, shape_of
from headrace.plan.spark.calls import call_text
from headrace.plan.spark.grouped import aggregates_of
from headrace.plan.spark.items import item_column
from headrace.plan.tables import (
    EVENTS,
    RECORD_KEY,
    WATERMARK,
    Answer,
    Evaluated,
    Having,
    KeyPart,
    Output,
    Table,
    TableColumn,
    Target,
)
from headrace.plan.terms import Reference, Term
from headrace.schema.types import DataType, parse_type
from headrace.time.placement import OfRecord, PlaceColumn, Placement, placement_of

__all__ = ["answer_of", "grouped_table", "items_part", "items_table", "plain_table"]

_TIMESTAMP = parse_type("TIMESTAMP")
_BIGINT = parse_type("BIGINT")
_BINARY = parse_type("BINARY")
_WINDOW = {
    "window_start": "window.start",
    "window_end": "window.end",
    "window_time": "window_time(window)",
}


def items_part(call: str) -> str:
    """Return the name of the part of the table that holds the items of a call."""
    return f"items_{call}"


def plain_table(view: View, version: str, types: Mapping[str, DataType]) -> Table:
    """Return the table whose rows are records; nothing merges."""
    query = shape_of(view)
    placement = OfRecord(query.is_derived, query.ordinals)
    outputs = [
        Output(output.name, Reference(f"o{i}", types[f"o{i}"]), types[f"o{i}"])
        for i, output in enumerate(query.outputs)
    ]
    columns = [TableColumn(f"o{i}", output.type) for i, output in enumerate(outputs)]
    target = None
    if view.topic is not None:
        columns += [TableColumn(WATERMARK, _BIGINT), TableColumn(RECORD_KEY, _BINARY)]
        keys = {output.name: column.name for output, column in zip(outputs, columns, strict=False)}
        target = Target(view.topic, RECORD_KEY if view.key is None else keys[view.key])
    return Table(
        view.name,
        version,
        (*map(_place_column, placement.columns), *columns),
        placement,
        outputs=tuple(outputs),
        key=tuple(KeyPart(c.name.strip("_"), c.name, _BIGINT) for c in placement.columns),
        target=target,
    )


def grouped_table(
    view: View,
    version: str,
    types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
    evaluated: Collection[str] | None = None,
) -> Table:
    """Return the table of a grouped view. DefinitionError: a type that cannot be folded or read.

    `evaluated` are the places that Spark evaluates, as the ledger has them; None: whatever the
    store cannot.
    """
    query = shape_of(view)
    placement = placement_of(query.window)
    keys = [TableColumn(key.name, types[key.name]) for key in query.keys]
    for at, key in enumerate(query.keys):
        if not types[key.name].is_comparable:
            found = types[key.name].sql
            if key.derived:
                raise refuse(
                    view,
                    f"{key.expression} is {found}, and a MAP over keys cannot be kept beside them; "
                    f"compute it when you read the view",
                )
            raise refuse(
                view,
                f"GROUP BY {key.expression} is {found}: a MAP is no key; group by an entry of it, "
                f"or by array_sort(map_entries(...))",
                group_place(view.query, key_column(at)),
            )
        _refuse_two_zeros(view, key, types)
    aggregates = aggregates_of(view, query, types)
    states = [
        column
        for name, aggregate in aggregates.items()
        if aggregate.items is None
        for column in _state_columns(name, aggregate)
    ]
    places = map(_place_column, placement.columns)
    finals = _Finals(view, types, output_types, aggregates, evaluated)
    outputs, having = finals.outputs(), finals.having()
    return Table(
        view.name,
        version,
        (*places, *keys, TableColumn(EVENTS, _BIGINT, Merge.COUNT), *states),
        placement,
        tuple(answer_of(name, aggregate) for name, aggregate in aggregates.items()),
        outputs,
        having,
        _told_key(view, types),
        view.retention_us,
        children=tuple(
            items_table(view.name, version, placement, keys, name, aggregate)
            for name, aggregate in aggregates.items()
            if aggregate.items is not None
        ),
        evaluated=tuple(finals.evaluated),
        newest=f"{query.calls[NEWEST_CALL].name}_0" if view.kind == "table" else None,
    )


def items_table(
    view: str,
    version: str,
    placement: Placement,
    groups: list[TableColumn],
    call: str,
    aggregate: Aggregate,
) -> Table:
    """Return the table of a call's items, beside the view's own."""
    assert aggregate.items is not None
    item = TableColumn(item_column(call), aggregate.items.type)
    places = map(_place_column, placement.item_columns)
    return Table(
        view,
        version,
        (*places, *groups, item, *_state_columns(call, aggregate)),
        placement,
        part=items_part(call),
        keep=aggregate.items.keep,
        keeps_greatest=aggregate.items.keeps_greatest,
    )


def _place_column(place: PlaceColumn) -> TableColumn:
    return TableColumn(place.name, place.type, Merge.GREATEST if place.latest else None)


def _state_columns(call: str, aggregate: Aggregate) -> list[TableColumn]:
    return [
        TableColumn(f"{call}_{i}", state.type, state.merge, state.most)
        for i, state in enumerate(aggregate.states)
    ]


def answer_of(call: str, aggregate: Aggregate) -> Answer:
    """Return what a call answers, in words."""
    return Answer(
        call,
        aggregate.final,
        aggregate.type,
        tuple(f"{call}_{i}" for i in range(len(aggregate.states))),
        aggregate.parameter,
        None if aggregate.items is None else items_part(call),
    )


def _told_key(view: View, types: Mapping[str, DataType]) -> tuple[KeyPart, ...]:
    told = key_parts(view)
    window = [name for column, name in WINDOW_NAMES.items() if column in told]
    parts = [*window, *(key.name for key in shape_of(view).keys if not key.derived)]
    return tuple(
        KeyPart(name, part, types.get(part, _TIMESTAMP))
        for part, name in zip(parts, told.values(), strict=True)
    )


class _Finals:
    """What readers see of a grouped view, and what Spark evaluates of it, as it is found."""

    def __init__(
        self,
        view: View,
        types: Mapping[str, DataType],
        output_types: Mapping[str, DataType],
        aggregates: Mapping[str, Aggregate],
        wanted: Collection[str] | None,
    ) -> None:
        self.view = view
        self.evaluated: list[Evaluated] = []
        self._shape = shape_of(view)
        self._types = output_types
        self._names = _names(view, types, output_types, aggregates)
        self._wanted = wanted

    def outputs(self) -> tuple[Output, ...]:
        """Return the columns that readers see. DefinitionError."""
        return tuple(
            Output(
                output.name,
                self._term(f"o{at}", output.expression, self._types[f"o{at}"]),
                self._types[f"o{at}"],
                say(output.expression, self._names),
            )
            for at, output in enumerate(self._shape.outputs)
        )

    def having(self) -> Having | None:
        """Return the condition of HAVING. DefinitionError: it is none."""
        text = self._shape.having
        if text is None:
            return None
        type = self._types["__having"]
        if type.kind != "BOOLEAN":
            place = condition_place(self.view.query, over_groups=True)
            raise refuse(self.view, f"HAVING is {type.sql}; write a condition", place)
        return Having(self._term("having", text, type), say(text, self._names))

    def _term(self, place: str, expression: str, type: DataType) -> Term:
        """Return an expression as a term, or as a column that Spark evaluates."""
        if self._wanted is None or place not in self._wanted:
            try:
                return to_term(expression, self._names)
            except ValueError as error:
                if self._wanted is not None or placement_of(self._shape.window).overlaps:
                    raise refuse(self.view, str(error)) from error
        known = self._names.references
        used = names_in(expression)
        inputs = tuple((name, type) for name, type in known.items() if name in used)
        found = Evaluated(f"s{len(self.evaluated)}", expression, type, inputs, place)
        self.evaluated.append(found)
        return Reference(found.name, type)


def _names(
    view: View,
    types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
    aggregates: Mapping[str, Aggregate],
) -> Names:
    query = shape_of(view)
    expressions = [output.expression for output in query.outputs]
    expressions += [] if query.having is None else [query.having]
    # A part whose type is none of ours, an interval, has none here.
    parts = {
        text: output_types[f"__part{i}"]
        for i, text in enumerate(typed_parts(expressions))
        if f"__part{i}" in output_types
    }
    written = {key.name: key.expression for key in query.keys}
    written |= {call.name: call_text(call) for call in query.calls}
    references = {key.name: types[key.name] for key in query.keys}
    references |= {name: aggregate.type for name, aggregate in aggregates.items()}
    references |= dict.fromkeys(_WINDOW, _TIMESTAMP)
    return Names(references, written | _WINDOW, parts)


def _refuse_two_zeros(view: View, key: Key, types: Mapping[str, DataType]) -> None:
    """Refuse a key that 0.0 and -0.0, which are one group, could make two groups of."""
    for base in shape_of(view).keys:
        if base.name in key.over and types[base.name].has_two_zeros:
            raise refuse(
                view,
                f"{key.expression} may not be the same for all of a group: {base.expression} is "
                f"{types[base.name].sql}, whose 0.0 and -0.0 are one key; add {key.expression} to "
                f"GROUP BY, or compute it when you read the view",
            )
