"""Let Spark check a view and tell its types; the plan is made from its answer."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.errors import DefinitionError, Problem
from headrace.ledger.definitions import short_version
from headrace.model import nodes
from headrace.model.definitions import Stream, View
from headrace.model.fingerprint import view_fingerprint
from headrace.model.graph import walk
from headrace.model.nodes import Named, Node
from headrace.model.scalars import Scalar
from headrace.plan.fold import input_columns, plan_fold
from headrace.plan.shape import Shape, shapes_of
from headrace.plan.spark.relations import leaf_columns, relation_query
from headrace.plan.spark.types import argument_types_query, output_types_query
from headrace.plan.stages import Fold
from headrace.schema.types import DataType, parse_type

__all__ = ["plan_view"]


@lru_cache(maxsize=256)
def plan_view(
    spark: SparkSession, view: View, streams: tuple[Stream, ...], version: str | None = None
) -> tuple[Fold, ...]:
    """Return the folds of a view, one for each branch. DefinitionError: Spark or the plan refuses.

    `streams` are those that it reads. `version` is the one that the ledger keeps it under; None: it
    is new.
    """
    session = spark.newSession()
    version = version or short_version(view_fingerprint(view, *streams))
    view = replace(view, query=_unify(session, view, streams))
    by_name = {stream.name: stream for stream in streams}
    folds = [
        _plan_branch(session, view, shape, by_name[shape.stream], version)
        for shape in shapes_of(view)
    ]
    if len({fold.table for fold in folds}) > 1:
        raise _refuse(view, "the queries of UNION ALL give different types; write casts")
    return tuple(folds)


def _plan_branch(
    session: SparkSession, view: View, shape: Shape, stream: Stream, version: str
) -> Fold:
    _create_relation(session, "__input", input_columns(stream))
    asked = _analyse(session, view, argument_types_query(shape, stream))
    if not _is_deterministic(asked):
        raise _refuse_chance(session, view, shape)
    arguments = _types(view, asked)
    outputs = {}
    if shape.grouped:
        outputs = _types(view, _analyse(session, view, output_types_query(view, arguments)))
    fold = plan_fold(view, shape, stream, version, arguments, outputs)
    _types(view, _analyse(session, view, fold.query))  # what runs is what was checked
    return fold


def _create_relation(session: SparkSession, name: str, columns: Mapping[str, DataType]) -> None:
    schema = ", ".join(f"{_quoted(name)} {type.sql}" for name, type in columns.items())
    session.createDataFrame([], schema).createOrReplaceTempView(name)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _unify(session: SparkSession, view: View, streams: tuple[Stream, ...]) -> Node:
    """Return the query with casts where the branches of a union differ in their types."""
    if not any(isinstance(node, nodes.Union) for node in walk(view.query)):
        return view.query
    leaves = {stream.name: f"__leaf{at}" for at, stream in enumerate(streams)}
    for stream in streams:
        _create_relation(session, leaves[stream.name], leaf_columns(stream))

    def types(node: Node) -> dict[str, DataType]:
        return _types(view, _analyse(session, view, relation_query(node, leaves)))

    def unified(node: Node) -> Node:
        if isinstance(node, nodes.Scan | nodes.Deduplicate):
            return node
        if not isinstance(node, nodes.Union):
            return replace(node, input=unified(node.input))
        union = nodes.Union(tuple(unified(each) for each in node.inputs))
        wanted = list(types(union).values())
        return nodes.Union(tuple(_cast(each, types(each), wanted) for each in union.inputs))

    return unified(view.query)


def _cast(node: Node, found: Mapping[str, DataType], wanted: list[DataType]) -> Node:
    if list(found.values()) == wanted:
        return node
    columns = []
    for (name, type), common in zip(found.items(), wanted, strict=True):
        own = Scalar.column(name)
        cast = Scalar(f"cast({{0}} as {common.sql.lower()})", (name,))
        columns.append(Named(name, own if type == common else cast))
    return nodes.Project(node, tuple(columns))


def _refuse_chance(session: SparkSession, view: View, shape: Shape) -> DefinitionError:
    """Return the refusal of an expression that Spark may answer differently the next time."""
    for name, text in {**{key.name: key.expression for key in shape.keys},
                       **{output.name: output.expression for output in shape.outputs},
                       "WHERE": shape.where or "true"}.items():  # fmt: skip
        try:
            frame = session.sql(f"SELECT {text} AS x FROM __input")
        except (AnalysisException, ParseException):
            continue  # over names that only the whole query has
        if not _is_deterministic(frame):
            return _refuse(
                view,
                f"{name}, {text}, can give another answer each time it is asked, as Spark says; a "
                "replay would not give the same rows. Use columns of the record instead",
            )
    return _refuse(
        view,
        "one of its expressions can give another answer each time it is asked, as Spark says; a "
        "replay would not give the same rows. Use columns of the record instead",
    )


def _is_deterministic(frame: DataFrame) -> bool:
    return bool(frame._jdf.queryExecution().analyzed().deterministic())


def _analyse(session: SparkSession, view: View, query: str) -> DataFrame:
    try:
        return session.sql(query)
    except (AnalysisException, ParseException, PySparkException) as error:
        raise _refuse(view, f"Spark refuses the query: {_first_sentence(error)}") from error


def _types(view: View, frame: DataFrame) -> dict[str, DataType]:
    types = {}
    for field in frame.schema.fields:
        try:
            types[field.name] = parse_type(field.dataType.simpleString())
        except ValueError as error:
            raise _refuse(view, f"{field.dataType.simpleString()}: {error}") from error
    return types


def _refuse(view: View, message: str) -> DefinitionError:
    return DefinitionError([Problem(view.location, f"{view.kind} {view.name}: {message}")])


def _first_sentence(error: PySparkException) -> str:
    # Spark appends the query's plan, which speaks of names the user never wrote.
    text = re.split(r"\n|; line \d+", error.getMessage() or str(error))[0]
    return text.replace("`__input`.", "")
