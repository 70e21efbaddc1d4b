"""Let Spark check a view and tell its types; the plan is made from its answer.

An answer depends on the columns of a stream and on a query, so it is kept by them: the same view
under another version, in an audit or in a second engine of this process, asks nothing again.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType
from pyspark.sql.types import DataType as SparkType

from headrace.engine.spark.faults import (
    REFUSALS,
    is_deterministic,
    output_place,
    refuse_chance,
    refuse_outputs,
    refuse_query,
)
from headrace.engine.spark.streams import check_stream
from headrace.ledger.definitions import short_version
from headrace.model import nodes
from headrace.model.definitions import Stream, View
from headrace.model.fingerprint import view_fingerprint
from headrace.model.graph import walk
from headrace.model.nodes import Named, Node
from headrace.model.scalars import Scalar
from headrace.plan.fold import input_columns, plan_fold
from headrace.plan.refusals import refuse
from headrace.plan.shape import Shape, shapes_of
from headrace.plan.spark.names import quoted
from headrace.plan.spark.relations import leaf_columns, relation_query
from headrace.plan.spark.types import argument_types_query, output_types_query
from headrace.plan.stages import Fold
from headrace.schema.types import DataType, parse_type

__all__ = ["plan_view"]


@lru_cache(maxsize=256)
def plan_view(
    spark: SparkSession,
    view: View,
    streams: tuple[Stream, ...],
    version: str | None = None,
    evaluated: frozenset[str] | None = None,
) -> tuple[Fold, ...]:
    """Return the folds of a view, one for each branch. DefinitionError: Spark or the plan refuses.

    `streams` are those that it reads. `version` is the one that the ledger keeps it under, and
    `evaluated` the places over aggregates that Spark evaluates in it; None: it is new.
    """
    for stream in streams:
        check_stream(spark, stream)
    version = version or short_version(view_fingerprint(view, *streams))
    asking = _Asking(spark, view, streams)
    view = replace(view, query=asking.unify())
    by_name = {stream.name: stream for stream in streams}
    folds = [
        _plan_branch(asking, view, shape, by_name[shape.stream], version, evaluated)
        for shape in shapes_of(view)
    ]
    if len({fold.table for fold in folds}) > 1:
        raise refuse(view, "the queries of UNION ALL give different types; write casts")
    return tuple(folds)


def _plan_branch(
    asking: "_Asking",
    view: View,
    shape: Shape,
    stream: Stream,
    version: str,
    evaluated: frozenset[str] | None,
) -> Fold:
    relation = _Relation("__input", _schema(input_columns(stream)))
    arguments = asking.argument_types(relation, argument_types_query(shape, stream))
    outputs = asking.output_types(relation, view, arguments) if shape.grouped else {}
    fold = plan_fold(view, shape, stream, version, arguments, outputs, evaluated)
    asking.types((relation,), fold.query)  # what runs is what was checked
    return fold


class _Relation(NamedTuple):
    """An empty relation, to ask about."""

    name: str
    schema: str


class _Answer(NamedTuple):
    """What Spark says of a query: its columns, and whether it promises the same rows each time."""

    schema: StructType
    deterministic: bool


@lru_cache(maxsize=64)
def _session(spark: SparkSession, relations: tuple[_Relation, ...]) -> SparkSession:
    """Return a session that has these relations, for questions alone."""
    session = spark.newSession()
    for name, schema in relations:
        session.createDataFrame([], schema).createOrReplaceTempView(name)
    return session


@lru_cache(maxsize=1024)
def _answer(spark: SparkSession, relations: tuple[_Relation, ...], query: str) -> _Answer:
    """Return Spark's answer. What it raises passes through, and is asked again the next time."""
    frame = _session(spark, relations).sql(query)
    return _Answer(frame.schema, is_deterministic(frame))


class _Asking:
    """Asks Spark about one view, as it was written; what it refuses is raised with its place."""

    def __init__(self, spark: SparkSession, view: View, streams: tuple[Stream, ...]) -> None:
        self._spark = spark
        self._view = view
        self._names = {stream.name: f"__leaf{at}" for at, stream in enumerate(streams)}
        self._streams = streams

    @cached_property
    def _leaves(self) -> tuple[_Relation, ...]:
        return tuple(
            _Relation(self._names[stream.name], _schema(leaf_columns(stream)))
            for stream in self._streams
        )

    @property
    def _session(self) -> SparkSession:
        """The session that knows the streams as the view reads them."""
        return _session(self._spark, self._leaves)

    def types(self, relations: tuple[_Relation, ...], query: str) -> dict[str, DataType]:
        """Return the types of a query's columns."""
        return _types(self._view, self._analyse(relations, query))

    def argument_types(self, relation: _Relation, query: str) -> dict[str, DataType]:
        """Return the types of expressions over records, none of which may be left to chance."""
        answer = self._analyse((relation,), query)
        if not answer.deterministic:
            raise refuse_chance(self._session, self._view, self._names)
        return _types(self._view, answer)

    def _analyse(self, relations: tuple[_Relation, ...], query: str) -> _Answer:
        try:
            return _answer(self._spark, relations, query)
        except REFUSALS as error:
            raise refuse_query(self._session, self._view, self._names, error) from error

    def output_types(
        self, relation: _Relation, view: View, arguments: Mapping[str, DataType]
    ) -> dict[str, DataType]:
        """Return the types of a grouped view's outputs; the query reads no relation."""
        session = _session(self._spark, (relation,))
        try:
            answer = _answer(self._spark, (relation,), output_types_query(view, arguments))
        except REFUSALS as error:
            raise refuse_outputs(session, view, arguments, error) from error
        if not answer.deterministic:
            raise refuse_outputs(session, view, arguments)
        return _types(view, answer)

    def unify(self) -> Node:
        """Return the query with casts where the branches of a union differ in their types."""
        if not any(isinstance(node, nodes.Union) for node in walk(self._view.query)):
            return self._view.query
        return self._unified(self._view.query)

    def _unified(self, node: Node) -> Node:
        if isinstance(node, nodes.Scan | nodes.Changelog | nodes.Deduplicate):
            return node
        if not isinstance(node, nodes.Union):
            return replace(node, input=self._unified(node.input))
        union = nodes.Union(tuple(self._unified(each) for each in node.inputs))
        wanted = list(self.types(self._leaves, relation_query(union, self._names)).values())
        return nodes.Union(
            tuple(
                _cast(each, self.types(self._leaves, relation_query(each, self._names)), wanted)
                for each in union.inputs
            )
        )


def _schema(columns: Mapping[str, DataType]) -> str:
    return ", ".join(f"{quoted(name)} {type.sql}" for name, type in columns.items())


def _spelled(type: SparkType) -> str:
    """Return a type as SQL; Spark's own simpleString does not quote the names of fields."""
    match type:
        case StructType(fields=fields):
            inner = (f"{quoted(field.name)}: {_spelled(field.dataType)}" for field in fields)
            return f"struct<{', '.join(inner)}>"
        case ArrayType(elementType=element):
            return f"array<{_spelled(element)}>"
        case MapType(keyType=key, valueType=value):
            return f"map<{_spelled(key)}, {_spelled(value)}>"
        case _:
            return str(type.simpleString())


def _cast(node: Node, found: Mapping[str, DataType], wanted: list[DataType]) -> Node:
    if list(found.values()) == wanted:
        return node
    columns = []
    for (name, type), common in zip(found.items(), wanted, strict=True):
        own = Scalar.column(name)
        cast = Scalar(f"cast({{0}} as {common.sql.lower()})", (name,))
        columns.append(Named(name, own if type == common else cast))
    return nodes.Project(node, tuple(columns))


def _types(view: View, answer: _Answer) -> dict[str, DataType]:
    types = {}
    for field in answer.schema.fields:
        try:
            types[field.name] = parse_type(_spelled(field.dataType))
        except ValueError as error:
            if field.name.startswith("__part"):
                continue  # the whole expression may be fine
            message = f"{field.dataType.simpleString()}: {error}"
            raise refuse(view, message, output_place(view, field.name)) from error
    return types
