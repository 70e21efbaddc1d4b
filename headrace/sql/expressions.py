"""Expressions of a view: their columns resolved, their text kept as the user wrote it.

Promises:
- Every column exists, stands in the spelling of CREATE STREAM and without the stream's alias.
- `text` is Spark SQL with the user's own functions and literals.
- `tree` is for comparing only: quotes, alias, outer parentheses and the case of names make no
  difference in it. The keys of a MAP, `m.A` and `m.a`, are no names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from headrace.errors import Problem
from headrace.model.definitions import Stream
from headrace.model.names import closest
from headrace.sql.statements import split_commas
from headrace.sql.text import SPARK, Refused, Source, identifier, render, word

__all__ = ["STANDS_FOR", "Expression", "Scope", "parse_tree", "strip_parentheses"]

#: The qualifier of names that stand for something else (a key, a call) in a tree. No alias can be
#: this, because names that start with an underscore are refused.
STANDS_FOR = "_"
#: What watermark() is in Spark: the record's own, from the column that stamping adds.
WATERMARK = "timestamp_micros(__watermark)"
#: `time` is what `window_time(window)` is read as.
WINDOW_PARTS = ("start", "end", "time")


@dataclass(frozen=True)
class Expression:
    """One expression over a stream's columns."""

    tokens: tuple[Token, ...]
    tree: exp.Expr
    text: str


def parse_tree(source: Source, tokens: Sequence[Token]) -> exp.Expr:
    """Return the tree of one expression, an Alias if it has one. Refused: it has no sound form."""
    if word(tokens[0]) in ("ALL", "AS", "DISTINCT"):  # which would belong to the SELECT below
        raise source.refuse(tokens[0], f"an expression cannot start with {word(tokens[0])}")
    parts = split_commas(tokens)
    if len(parts) > 1:
        comma = tokens[min(len(parts[0]), len(tokens) - 1)]
        raise source.refuse(comma, "one expression is expected here; remove the comma")
    head = Token(TokenType.SELECT, "SELECT", 1, 1, 0, 0)
    try:
        statements = SPARK.parser().parse([head, *tokens], source.text)
    except ParseError as error:
        raise _syntax_problem(source, tokens, error) from error
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise source.refuse(
            tokens[0], "this expression cannot be read; check its syntax"
        ) from error
    tree = statements[0] if len(statements) == 1 else None
    extra = tree is None or any(value for name, value in tree.args.items() if name != "expressions")
    if extra or not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise source.refuse(tokens[0], "one expression is expected here; check its syntax")
    result = tree.expressions[0]
    for node in result.walk():
        if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
            raise source.refuse(
                tokens[0], "parameters are not supported; write the value into the definition"
            )
        if isinstance(node, exp.Query | exp.Command | exp.QueryTransform):
            raise source.refuse(tokens[0], "only expressions may stand here, no statements")
    detached: exp.Expr = result.copy()
    return detached


def _syntax_problem(source: Source, tokens: Sequence[Token], error: ParseError) -> Refused:
    where = tokens[0]
    if error.errors:
        line, column = error.errors[0].get("line"), error.errors[0].get("col")
        where = next(
            (token for token in tokens if (token.line, token.col) == (line, column)), where
        )
    near = source.text[where.start : where.end + 1]
    return source.refuse(where, f"this expression cannot be read near {near}; check its syntax")


def strip_parentheses(tree: exp.Expr) -> exp.Expr:
    """Return the tree without parentheses around all of it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


@dataclass
class Scope:
    """The names that the expressions of one view may use."""

    source: Source
    stream: Stream
    qualifier: str
    has_window: bool = False
    outputs: frozenset[str] = frozenset()  # names in lower case, only to explain a mistake

    @property
    def columns(self) -> dict[str, str]:
        """The stream's columns, from lower case to their own spelling."""
        return {column.name.lower(): column.name for column in self.stream.columns}

    def read(
        self,
        tokens: Sequence[Token],
        *,
        stand_ins: Mapping[int, str] | None = None,
        aliases: Mapping[str, exp.Expr] | None = None,
    ) -> Expression:
        """Return an expression with every name resolved. Refused: a name is not known.

        `stand_ins` maps starts of tokens to the names that these tokens stand for; `aliases`
        maps names, in lower case, that may be used besides columns to what they stand for.
        """
        tokens, watermarks = self._without_watermark(tokens)
        tree = parse_tree(self.source, tokens)
        if isinstance(tree, exp.Alias | exp.Aliases | exp.Star):
            raise self.source.refuse(
                tokens[0], "one expression without a name is expected here; check its syntax"
            )
        if tree.find(exp.Star) is not None:
            raise self.source.refuse(tokens[0], "* cannot stand within an expression; name columns")
        index = {token.start: at for at, token in enumerate(tokens)}
        edits: dict[int, str | None] = dict.fromkeys(watermarks, WATERMARK)
        problems: list[Problem] = []
        root = exp.Paren(this=tree)
        for column in list(tree.find_all(exp.Column)):
            if column.parts[0].meta.get("start") in (stand_ins or {}):
                name = (stand_ins or {})[column.parts[0].meta["start"]]
                stand_in: exp.Expr = exp.column(name, table=STANDS_FOR)
                for field in column.parts[1:]:
                    stand_in = exp.Dot(this=stand_in, expression=field.copy())
                column.replace(stand_in)
                continue
            if column.parts[0].meta.get("start") in watermarks:
                continue
            alias = (aliases or {}).get(column.name.lower()) if len(column.parts) == 1 else None
            if alias is not None:
                is_name = isinstance(alias, exp.Column)
                column.replace(alias.copy() if is_name else exp.Paren(this=alias.copy()))
                continue
            try:
                self._resolve(column, tokens, index, edits)
            except Refused as refused:
                problems += refused.problems
        if problems:
            raise Refused(*problems)
        text = render(self.source, tokens, edits)
        return Expression(tuple(tokens), strip_parentheses(root), text)

    def _without_watermark(self, tokens: Sequence[Token]) -> tuple[list[Token], set[int]]:
        """Return the tokens with a name in the place of each watermark(), and where these stand."""
        kept: list[Token] = []
        starts: set[int] = set()
        at = 0
        while at < len(tokens):
            token = tokens[at]
            following = [str(each.text) for each in tokens[at + 1 : at + 3]]
            if word(token) == "WATERMARK" and following == ["(", ")"]:
                if self.stream.event_time is None:
                    raise self.source.refuse(
                        token,
                        f"watermark() needs the event time of {self.stream.name}, which has none; "
                        "add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 "
                        "SECONDS",
                    )
                last = tokens[at + 2]
                place = (token.line, token.col, token.start, last.end)
                kept.append(Token(TokenType.VAR, "__watermark", *place))
                starts.add(token.start)
                at += 3
            else:
                kept.append(token)
                at += 1
        return kept, starts

    def _resolve(
        self,
        column: exp.Column,
        tokens: Sequence[Token],
        index: Mapping[int, int],
        edits: dict[int, str | None],
    ) -> None:
        """Put the column's parts into normal form, and note how its text changes."""
        parts = column.parts
        starts = [part.meta.get("start", tokens[0].start) for part in parts]
        names = [part.name.lower() for part in parts]
        if names[0] == self.qualifier.lower() and len(names) > 1 and names[1] in self.columns:
            at = index[starts[0]]
            edits[tokens[at].start] = edits[tokens[at + 1].start] = None
            del parts[0], starts[0], names[0]
        elif self.has_window and names[0] == "window":
            # `window_time(window)` comes here as the part `time`, which nobody can write.
            is_time = names[1:] == ["time"] and _begins(self.source, starts[0], "window_time")
            if names[1:] not in (["start"], ["end"]) and not is_time:
                raise self.source.refuse(
                    starts[0], "a view's window has a start and an end: window.start, window.end"
                )
            edits |= dict(zip(starts, names, strict=True))
            edits[tokens[index[starts[0]] + 1].start] = "."
        if names[0] in self.columns:
            edits[starts[0]] = identifier(self.columns[names[0]])
            names[1:] = self._fields(names[0], [part.name for part in parts[1:]])
        elif not (self.has_window and names[0] == "window"):
            raise self._unknown(starts, names, [part.name for part in parts])
        plain = [exp.to_identifier(name) for name in names]
        for new, old in zip(plain, parts, strict=True):
            new.meta.update(old.meta)
        normal: exp.Expr = exp.Column(this=plain[0])
        for each in plain[1:]:
            normal = exp.Dot(this=normal, expression=each)
        column.replace(normal)

    def _fields(self, column: str, written: Sequence[str]) -> list[str]:
        """Return a path into a column as it is compared: in lower case, but for a MAP's keys."""
        [type] = [each.type for each in self.stream.columns if each.name.lower() == column]
        path: list[str] = []
        for name in written:
            while type.kind == "ARRAY":  # a field of an array is that of its elements
                type = type.parts[0]
            if type.kind == "MAP":
                path.append(name)
                type = type.parts[1]
            else:
                path.append(name.lower())
                fields = dict(zip(map(str.lower, type.names), type.parts, strict=False))
                type = fields.get(name.lower(), type)  # Spark refuses what is not there
        return path

    def _unknown(self, starts: Sequence[int], names: Sequence[str], written: list[str]) -> Refused:
        if names[0] == self.qualifier.lower() and len(names) > 1:
            starts, names, written = starts[1:], names[1:], written[1:]
        if names[0] == "session_window" and self.has_window:
            return self.source.refuse(
                starts[0], "a session's start and end are window.start and window.end here, too"
            )
        if names[0] == "window":
            return self.source.refuse(
                starts[0],
                "window stands for nothing here; add GROUP BY window(<event time>, '1 minute')",
            )
        shown = ".".join(written)
        if names[0] in self.outputs:
            return self.source.refuse(
                starts[0],
                f"{shown} is an output of the view, not a column of {self.stream.name}; write its "
                "expression instead",
            )
        hint = closest(names[0], self.columns.values())
        if not hint and len(names) > 1 and names[0] == self.stream.name.lower():
            hint = f" (the stream is called {self.qualifier} here)"
        return self.source.refuse(
            starts[0],
            f"{self.stream.name} has no column {shown}{hint}; its columns are "
            f"{', '.join(self.columns.values())}",
        )


def is_window_part(tree: exp.Expr) -> str | None:
    """Return `window_start`, `window_end` or `window_time` if the tree is just that, else None."""
    if not (isinstance(tree, exp.Dot) and isinstance(tree.this, exp.Column)):
        return None
    is_window = tree.this.name == "window" and not tree.this.table
    return f"window_{tree.name}" if is_window and tree.name in WINDOW_PARTS else None


def _begins(source: Source, start: int, text: str) -> bool:
    return source.text[start : start + len(text)].lower() == text


def is_plain_literal(tree: exp.Expr) -> bool:
    """Whether the tree is a number, a text or a truth value, perhaps with a minus."""
    if isinstance(tree, exp.Neg):
        return isinstance(tree.this, exp.Literal) and not tree.this.is_string
    return isinstance(tree, exp.Literal | exp.Boolean)


def refuse_null(source: Source, expression: Expression) -> None:
    """Refuse a bare NULL as a column: it has no type."""
    if isinstance(expression.tree, exp.Null):
        raise source.refuse(
            expression.tokens[0], "NULL alone has no type; write CAST(NULL AS STRING)"
        )


def name_of(tokens: Sequence[Token]) -> str | None:
    """Return the name if the tokens are one bare or quoted name and nothing else."""
    if len(tokens) == 1 and (word(tokens[0]) or tokens[0].token_type == TokenType.IDENTIFIER):
        return str(tokens[0].text)
    return None
