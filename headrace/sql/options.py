"""`WITH (name = 'value', ...)`: the options of a statement.

`${NAME}` in a value stands for an environment variable, and `$${` for `${` itself. Queries know no
variables: what a query says is in its file alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from headrace.errors import Problem
from headrace.model.names import closest
from headrace.sql.durations import parse_duration
from headrace.sql.statements import Cursor, split_commas
from headrace.sql.text import Refused, Source, word

__all__ = ["Option", "read_duration", "read_options"]

#: Options of the design whose issues have not built them yet, and what to do until then.
_LATER = {
    "versioned": "there are no tables yet; remove it",
}


#: Options of other engines: the option here that means the same.
_SAME = {
    "grace": "allowed_lateness",
    "grace_period": "allowed_lateness",
    "kafka_topic": "topic",
    "lateness": "allowed_lateness",
    "value_format": "format",
}
#: And what to do about those that have none.
_ADVICE = {
    "connector": "remove it: headrace.toml says where the log is",
    "partitions": "remove it: `headrace topics create` makes a topic with its partitions",
    "replicas": "remove it: `headrace topics create` makes a topic",
    "timestamp": "write WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS among the columns",
}


#: `$${`, `${NAME}`, or a `${` that does not end.
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:([^}]*)\})?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Option:
    """One option: where it stands, and its value."""

    name: Token
    value: Token
    text: str  # the value as the user meant it, without quotes, variables replaced


def read_options(
    cursor: Cursor, statement: str, known: Sequence[str], problems: list[Problem]
) -> Mapping[str, Option]:
    """Read `(name = 'value', ...)` at the cursor; what is wrong with single options is added."""
    source = cursor.source
    options: dict[str, Option] = {}
    inside = cursor.take_parenthesised("the options")
    for part in split_commas(inside):
        try:
            if not part:
                raise cursor.refuse(
                    "an option is missing in WITH (...); write WITH (name = 'value', ...)"
                )
            token = _read_name(source, part)
            name = str(token.text).lower()
            if name in options:
                raise source.refuse(token, f"option {name} occurs twice; keep one")
            # Before its value: `versioned = true` is refused for what it is.
            if name not in known:
                raise source.refuse(token, _unknown(name, statement, known))
            options[name] = _read_option(source, token, part)
        except Refused as refused:
            problems += refused.problems
    return options


def read_duration(
    source: Source, options: Mapping[str, Option], name: str, problems: list[Problem]
) -> int | None:
    """Return an option that is a duration, None without it; one that is none is a problem."""
    option = options.get(name)
    if option is None:
        return None
    try:
        return parse_duration(option.text)
    except ValueError as error:
        problems.append(source.problem(option.value, f"{name}: {error}"))
        return None


def _read_name(source: Source, tokens: Sequence[Token]) -> Token:
    if tokens[0].token_type == TokenType.STRING:  # as Flink's users write it
        return tokens[0]
    return Cursor(source, tokens).take_name("name of an option")


def _read_option(source: Source, name: Token, tokens: Sequence[Token]) -> Option:
    cursor = Cursor(source, tokens[1:])
    if not cursor.accept("="):
        raise source.refuse(
            name, f"option {name.text} has no value; write {name.text.lower()} = '...'"
        )
    value, behind = cursor.peek(), cursor.peek(1)
    if behind is not None and word(behind) and value and value.token_type == TokenType.STRING:
        raise source.refuse(behind, f"a comma is missing before {behind.text}; write one")
    if value is None or value.token_type != TokenType.STRING or len(tokens) != 3:
        raise source.refuse(
            value or name,
            f"the value of option {name.text} is written in quotes: {name.text.lower()} = '...'",
        )
    return Option(name, value, _with_variables(source, name, value))


def _with_variables(source: Source, name: Token, value: Token) -> str:
    """Return an option's value with its variables replaced. Refused: one is not set."""
    option = str(name.text).lower()

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        variable = found[1]
        if variable is None or not _VARIABLE.fullmatch(variable):
            raise source.refuse(
                value,
                f"option {option}: {found[0]} names no environment variable; write ${{NAME}}, with "
                "letters, digits and underscores, or $${ for the characters themselves",
            )
        if variable not in source.environment:
            raise source.refuse(
                value,
                f"option {option}: the environment variable {variable} is not set; set it where "
                "the project is read, or write $${ for the characters themselves",
            )
        return source.environment[variable]

    return _REFERENCE.sub(replace, str(value.text))


def _unknown(name: str, statement: str, known: Sequence[str]) -> str:
    if name in _LATER:
        return f"option {name} is not built yet: {_LATER[name]}"
    if _SAME.get(name) in known:
        return f"{statement} has no option {name}; write {_SAME[name]} = '...'"
    if name in _ADVICE:
        return f"{statement} has no option {name}; {_ADVICE[name]}"
    return (
        f"{statement} has no option {name}{closest(name, known)}; its options are "
        f"{', '.join(known)}"
    )
