"""The canonical form of definitions: JSON that a later release still reads, without parsing SQL.

    {"canonical": 1, "stream": {"name": ..., "columns": [...], "topic": ..., ...}}
    {"canonical": 1, "view": {"name": ..., "query": {"node": "project", "input": ..., ...}, ...}}

Promises:
- `from_canonical(to_canonical(definition)) == definition`, but for its text and its place in a
  file, which are no part of the form. A view's form and those of its streams are all that is
  needed to go on with it.
- Equal definitions have equal forms. What a definition does not say is not in its form, so that an
  option that is added later changes no form, and no fingerprint, of definitions without it.
- A version that was released is never changed: what it cannot say gets the next number, and every
  release reads all numbers up to its own. A later number, an unknown node or a damaged form raises
  DefinitionUnreadable.
"""

from collections.abc import Mapping
from typing import Any

from headrace.errors import DefinitionUnreadable
from headrace.model.definitions import Adaptive, Computed, Stream, View
from headrace.model.forms import Form, said
from headrace.model.nodes import (
    Aggregate,
    AssignWindows,
    Call,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Named,
    Node,
    Project,
    Scan,
    Union,
    Window,
)
from headrace.model.scalars import Scalar
from headrace.schema.types import Column, DataType, parse_type

__all__ = ["CANONICAL", "from_canonical", "to_canonical"]

#: The last version of the form that this release knows. Tables came with the second.
CANONICAL = 2


def to_canonical(definition: Stream | View) -> dict[str, Any]:
    """Return the form of a stream or a view."""
    if isinstance(definition, Stream):
        return {"canonical": _version_of(definition), "stream": _write_stream(definition)}
    return {"canonical": _version_of(definition), "view": _write_view(definition)}


def _version_of(definition: Stream | View) -> int:
    """Return the first version that can say it: later ones would change what is kept for no use."""
    return 2 if definition.kind == "table" else 1


def from_canonical(form: Mapping[str, Any]) -> Stream | View:
    """Return the definition that a form is of. DefinitionUnreadable."""
    whole = Form(form, "the form")
    version = whole.number("canonical")
    if version > CANONICAL:
        raise DefinitionUnreadable(
            f"a kept definition has the canonical form {version}, and this release reads forms up "
            f"to {CANONICAL}; start the release that wrote it, or a later one."
        )
    if version < 1:
        raise whole.refuse(f"has the version {version}")
    found: Stream | View | None = whole.optional("stream", _read_stream)
    found = found or whole.one("view", _read_view)
    whole.finish()
    return found


def _write_stream(stream: Stream) -> dict[str, Any]:
    adaptive = stream.adaptive
    return said(
        name=stream.name,
        columns=[
            said(
                name=each.name,
                type=each.type.ddl,
                required=not each.nullable,
                path=list(each.path),
                format=each.format,
            )
            for each in stream.columns
        ],
        topic=stream.topic,
        format=stream.format,
        event_time=stream.event_time,
        delay_us=stream.delay_us or None,
        adaptive=adaptive and {"share": adaptive.share, "max_us": adaptive.max_us},
        idle_timeout_us=stream.idle_timeout_us,
        unique=stream.unique,
        unique_within_us=stream.unique_within_us or None,
        duplicates=stream.duplicates,
        key=stream.key,
        timestamp_format=stream.timestamp_format,
        computed=[
            said(
                name=each.name,
                scalar=_write_scalar(each.scalar),
                type=each.type and each.type.ddl,
                at=each.at or None,
            )
            for each in stream.computed
        ],
        primary_key=list(stream.primary_key),
        key_from=None if stream.key_from == "key" else stream.key_from,
        decimal_format=stream.decimal_format,
        source_table=stream.source_table,
        may_lose_rows=stream.may_lose_rows,
    )


def _read_stream(form: Form) -> Stream:
    return Stream(
        form.text("name"),
        form.many("columns", _read_column),
        form.text("topic"),
        form.text("format"),
        event_time=form.optional_text("event_time"),
        delay_us=form.optional_number("delay_us") or 0,
        adaptive=form.optional(
            "adaptive", lambda each: Adaptive(each.text("share"), each.number("max_us"))
        ),
        idle_timeout_us=form.number("idle_timeout_us"),
        unique=form.optional_text("unique"),
        unique_within_us=form.optional_number("unique_within_us") or 0,
        duplicates=form.text("duplicates"),
        key=form.optional_text("key"),
        timestamp_format=form.optional_text("timestamp_format"),
        computed=form.many("computed", _read_computed),
        primary_key=form.texts("primary_key"),
        key_from=form.optional_text("key_from") or "key",
        decimal_format=form.optional_text("decimal_format"),
        source_table=form.optional_text("source_table"),
        may_lose_rows=form.flag("may_lose_rows"),
    )


def _read_column(form: Form) -> Column:
    name, type_ = form.text("name"), _read_type(form, form.text("type"))
    nullable = not form.flag("required")
    return Column(name, type_, nullable, form.steps("path"), form.optional_text("format"))


def _read_computed(form: Form) -> Computed:
    written = form.optional_text("type")
    return Computed(
        form.text("name"),
        form.one("scalar", _read_scalar),
        None if written is None else _read_type(form, written),
        form.optional_number("at") or 0,
    )


def _read_type(form: Form, text: str) -> DataType:
    try:
        return parse_type(text)
    except ValueError as error:
        raise form.refuse(f"has a type that is not known ({error})") from error


def _write_view(view: View) -> dict[str, Any]:
    return said(
        name=view.name,
        query=_write_node(view.query),
        allowed_lateness_us=view.allowed_lateness_us or None,
        late=view.late,
        retention_us=view.retention_us,
        emit=view.emit,
        emit_every_us=view.emit_every_us or None,
        changes=None if view.changes == "followed" else view.changes,
        topic=view.topic,
        key=view.key,
    )


def _read_view(form: Form) -> View:
    return View(
        form.text("name"),
        form.one("query", _read_node),
        form.optional_number("allowed_lateness_us") or 0,
        late=form.text("late"),
        retention_us=form.optional_number("retention_us"),
        emit=form.text("emit"),
        emit_every_us=form.optional_number("emit_every_us") or 0,
        changes=form.optional_text("changes") or "followed",
        topic=form.optional_text("topic"),
        key=form.optional_text("key"),
    )


def _write_node(node: Node) -> dict[str, Any]:
    match node:
        case Scan():
            return {"node": "scan", "stream": node.stream}
        case Changelog():
            return {"node": "changelog", "stream": node.stream}
        case Deduplicate():
            below = _write_node(node.input)
            return said(node="deduplicate", input=below, by=node.by, within_us=node.within_us)
        case Project():
            columns = [
                said(name=each.name, scalar=_write_scalar(each.scalar)) for each in node.columns
            ]
            return said(node="project", input=_write_node(node.input), columns=columns)
        case Filter():
            condition = _write_scalar(node.condition)
            return {"node": "filter", "input": _write_node(node.input), "condition": condition}
        case Union():
            return said(node="union", inputs=[_write_node(each) for each in node.inputs])
        case Generate():
            return said(
                node="generate",
                input=_write_node(node.input),
                function=node.function,
                argument=_write_scalar(node.argument),
                columns=list(node.columns),
                outer=node.outer,
            )
        case AssignWindows():
            window = _write_window(node.window)
            return {"node": "windows", "input": _write_node(node.input), "window": window}
        case Aggregate():
            return said(
                node="aggregate",
                input=_write_node(node.input),
                window=node.window and _write_window(node.window),
                keys=[_write_scalar(key) for key in node.keys],
                calls=[_write_call(call) for call in node.calls],
            )


def _read_node(form: Form) -> Node:
    kind = form.text("node")
    match kind:
        case "scan":
            return Scan(form.text("stream"))
        case "changelog":
            return Changelog(form.text("stream"))
        case "deduplicate":
            below = form.one("input", _read_node)
            if not isinstance(below, Scan):
                raise form.refuse("is over another node than a scan")
            return Deduplicate(below, form.text("by"), form.number("within_us"))
        case "project":
            return Project(form.one("input", _read_node), form.many("columns", _read_named))
        case "filter":
            return Filter(form.one("input", _read_node), form.one("condition", _read_scalar))
        case "union":
            return Union(form.many("inputs", _read_node))
        case "generate":
            return Generate(
                form.one("input", _read_node),
                form.text("function"),
                form.one("argument", _read_scalar),
                form.texts("columns"),
                form.flag("outer"),
            )
        case "windows":
            return AssignWindows(form.one("input", _read_node), form.one("window", _read_window))
        case "aggregate":
            return Aggregate(
                form.one("input", _read_node),
                form.optional("window", _read_window),
                form.many("keys", _read_scalar),
                form.many("calls", _read_call),
            )
        case _:
            raise form.refuse(f"is the unknown node {kind!r}")


def _write_scalar(scalar: Scalar) -> dict[str, Any]:
    return said(text=scalar.text, refs=list(scalar.refs))


def _read_scalar(form: Form) -> Scalar:
    scalar = Scalar(form.text("text"), form.texts("refs"))
    try:
        scalar.render(str)
    except IndexError as error:
        raise form.refuse("has more holes than columns") from error
    return scalar


def _read_named(form: Form) -> Named:
    return Named(form.text("name"), form.one("scalar", _read_scalar))


def _write_window(window: Window) -> dict[str, Any]:
    return said(
        kind=window.kind,
        size_us=window.size_us,
        slide_us=window.slide_us or None,
        offset_us=window.offset_us or None,
        time=window.time and _write_scalar(window.time),
        zone=window.zone,
    )


def _read_window(form: Form) -> Window:
    return Window(
        form.number("size_us"),
        form.text("kind"),
        form.optional_number("slide_us") or 0,
        form.optional_number("offset_us") or 0,
        form.optional("time", _read_scalar),
        form.optional_text("zone"),
    )


def _write_call(call: Call) -> dict[str, Any]:
    return said(
        function=call.function,
        arguments=[_write_scalar(each) for each in call.arguments],
        parameters=list(call.parameters),
        ignores_nulls=call.ignores_nulls,
        condition=call.condition and _write_scalar(call.condition),
    )


def _read_call(form: Form) -> Call:
    return Call(
        form.text("function"),
        form.many("arguments", _read_scalar),
        form.texts("parameters"),
        form.flag("ignores_nulls"),
        form.optional("condition", _read_scalar),
    )
