"""Where terms fail: as tests that raise nothing, beside SQL for the values of all other rows.

What fails in Spark is told in two ways:
- Where the SQL of an operation is NULL instead (a division by zero, a whole number that is too
  large, an element that is not there) there is a test for it, which is asked where the operation
  is: behind its CASE, IF or COALESCE.
- What DuckDB raises (a decimal of too many digits, a time out of range) is told by TRY around the
  whole term. Where one row of 2,048 raises, TRY asks all of them one by one, at 8 µs each on 2
  cores: so it is for what is rare.

Promise: neither the value nor a test raises, whatever the row. A test is true or false.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.plan.finals.decimals import digits_of
from headrace.plan.terms import Cause, Literal, Operation, Operator, Reference, Term
from headrace.schema.types import DataType
from headrace.store.duckdb.expressions.terms import part_text, term_text

__all__ = ["Asked", "Names", "ask"]

Tests = dict[Cause, str]

_FRACTIONS = ("FLOAT", "DOUBLE")
_DIVISIONS = (Operator.DIVIDE, Operator.INTEGER_DIVIDE, Operator.REMAINDER)
#: What DuckDB raises nothing for, whatever the types are.
_NEVER_RAISE = frozenset(
    {
        *(Operator.AND, Operator.OR, Operator.NOT, Operator.IS_NULL, Operator.IS_NOT_NULL),
        *(Operator.IS_TRUE, Operator.IS_FALSE, Operator.IS_NAN, Operator.SIGN),
        *(Operator.SQUARE_ROOT, Operator.BIT_AND, Operator.BIT_OR, Operator.BIT_XOR),
        *(Operator.BIT_NOT, Operator.POSITIVE_REMAINDER, Operator.CONCATENATE),
        *(Operator.JOIN_TEXTS, Operator.LENGTH, Operator.TRIM, Operator.TRIM_LEFT),
        *(Operator.TRIM_RIGHT, Operator.REPLACE, Operator.POSITION, Operator.CONTAINS),
        *(Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.LIKE, Operator.MD5, Operator.SHA1),
        *(Operator.SHA256, Operator.YEAR, Operator.QUARTER, Operator.MONTH, Operator.WEEK),
        *(Operator.DAY, Operator.DAY_OF_WEEK, Operator.WEEKDAY, Operator.DAY_OF_YEAR),
        *(Operator.HOUR, Operator.MINUTE, Operator.SECOND, Operator.FORMAT_TIME),
        *(Operator.TRUNCATE_TIME, Operator.DAYS_BETWEEN, Operator.TO_SECONDS),
        *(Operator.TO_WHOLE_SECONDS, Operator.TO_MILLISECONDS, Operator.TO_MICROSECONDS),
        *(Operator.STRUCT, Operator.FIELD, Operator.SIZE, Operator.ITEM, Operator.ELEMENT),
        *(Operator.TRY_ELEMENT, Operator.JOIN_LIST, Operator.SORT, Operator.SORT_DESCENDING),
        *(Operator.SORT_NULLS_LAST, Operator.KEYS, Operator.VALUES),
    }
)
#: What compares or chooses: it raises nothing if no decimal has to be converted.
_ALIKE = frozenset(
    {
        *(Operator.EQUAL, Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL),
        *(Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.SAME, Operator.BETWEEN),
        *(Operator.IN, Operator.COALESCE, Operator.NULL_IF, Operator.IF_NOT_NULL),
        *(Operator.IF_NAN, Operator.GREATEST, Operator.LEAST, Operator.CASE, Operator.CASE_OF),
        Operator.LIST,
    }
)
#: What computes with numbers: it raises nothing if none of them is a decimal.
_NUMBERS = frozenset(
    {
        *(Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE, Operator.REMAINDER),
        *(Operator.TRY_ADD, Operator.TRY_SUBTRACT, Operator.TRY_MULTIPLY, Operator.TRY_DIVIDE),
        *(Operator.TRY_REMAINDER, Operator.NEGATE, Operator.ABSOLUTE, Operator.ROUND),
        *(Operator.FLOOR, Operator.CEILING),
    }
)
#: What is NULL for whole numbers whose result does not fit, where Spark fails.
_FITTED = frozenset(
    {Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.NEGATE, Operator.ABSOLUTE}
)


@dataclass(frozen=True)
class Names:
    """What the names of a term stand for: their SQL, and the tests whether that fails.

    `queries` are the names that stand for a query of their own.
    """

    texts: Mapping[str, str]
    faults: Mapping[str, Mapping[Cause, str]] = field(default_factory=dict)
    queries: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """A term that is asked of a row: its value, and the tests whether it fails, by their causes."""

    value: str
    fails: Mapping[Cause, str]


def ask(term: Term, names: Names) -> Asked:
    """Return the value of a term and where it fails."""
    if not _raises(term):
        return Asked(term_text(term, names.texts), _tests(term, names))
    used = sorted(names.queries & set(_references(term)))
    # TRY takes no query: what one answers is worked out first. And it is asked within a lambda,
    # where DuckDB looks for no expressions that others share: it would ask those outside of TRY.
    texts, faults = dict(names.texts), dict(names.faults)
    fields = []
    for name in used:
        texts[name] = f"items.{name}"
        fields.append(f"{name} := ({names.texts[name]})")
        if name in faults:
            either = " OR ".join(faults[name].values())
            faults[name] = {next(iter(faults[name])): f"items.{name}_fails"}
            fields.append(f"{name}_fails := {either}")
    inner = Names(texts, faults)

    def tried(text: str) -> str:
        items = f"struct_pack({', '.join(fields)})" if fields else "0"
        return f"list_transform([{items}], lambda items: TRY({text}))[1]"

    text = term_text(term, inner.texts)
    tests = {
        cause: f"coalesce({tried(test)}, false)" for cause, test in _tests(term, inner).items()
    }
    other = f"{tried(f'struct_pack(v := {text})')} IS NULL"
    return Asked(tried(text), _either(tests, {Cause.OTHER: other}))


def _references(term: Term) -> list[str]:
    if isinstance(term, Operation):
        return [name for each in term.operands for name in _references(each)]
    return [term.name] if isinstance(term, Reference) else []


def _raises(term: Term) -> bool:
    """Whether DuckDB may raise an error for a term."""
    if not isinstance(term, Operation):
        return False
    return _may_raise(term) or any(map(_raises, term.operands))


def _may_raise(term: Operation) -> bool:
    """Whether DuckDB may raise an error for the operation itself."""
    types = [each.type for each in term.operands]
    if term.operator in _NEVER_RAISE:
        return False
    if term.operator in _ALIKE:
        decimals = {each for each in (*types, term.type) if each is not None}
        decimals -= {each for each in decimals if each.kind in ("BOOLEAN", *_FRACTIONS)}
        return len(decimals) > 1 and any(each.kind == "DECIMAL" for each in decimals)
    if term.operator in _NUMBERS:
        return any(each is not None and each.kind == "DECIMAL" for each in (*types, term.type))
    # Casts are of exact literals, or done gently, or between types that hold all values.
    return term.operator is not Operator.CAST


def _tests(term: Term, names: Names) -> Tests:
    """Return the tests for what fails in Spark and not here."""
    if isinstance(term, Reference):
        return dict(names.faults.get(term.name, {}))
    if isinstance(term, Literal):
        return {}
    tests = [_tests(each, names) for each in term.operands]
    texts = [f"({part_text(each, names.texts)})" for each in term.operands]
    match term.operator:
        case Operator.CASE | Operator.CASE_OF:
            return _case_tests(term.operator, tests, texts)
        case Operator.COALESCE:
            return _chained(tests, [f"{text} IS NULL" for text in texts])
        case Operator.AND:
            return _chained(tests, [f"{text} IS NOT FALSE" for text in texts])
        case Operator.OR:
            return _chained(tests, [f"{text} IS NOT TRUE" for text in texts])
        case Operator.IF_NAN:
            return _chained(tests, [f"coalesce(isnan({text}), false)" for text in texts])
        case Operator.IF_NOT_NULL:
            value, then, otherwise = tests
            return _either(
                value,
                _only(f"{texts[0]} IS NOT NULL", then),
                _only(f"{texts[0]} IS NULL", otherwise),
            )
    return _either(*tests, _own(term, texts, names))


def _own(term: Operation, texts: Sequence[str], names: Names) -> Tests:
    """Return the tests whether an operation fails whose operands do not."""
    types = [each.type for each in term.operands]
    is_list = types[0] is not None and types[0].kind == "ARRAY"
    if term.operator in _DIVISIONS:
        return {Cause.ZERO: _surely(f"{texts[1]} = 0 AND {texts[0]} IS NOT NULL")}
    is_fitted = term.operator in _FITTED and term.type.is_integer
    if is_fitted or term.operator is Operator.CAST:
        return _unless_it_fits(term, texts, names)
    if not is_list:
        return {}
    items, place = texts[0], texts[1] if len(texts) > 1 else ""
    match term.operator:
        case Operator.ITEM:
            none = f"{items} IS NOT NULL AND ({place} < 0 OR {place} >= len({items}))"
            return {Cause.ELEMENT: _surely(none)}
        case Operator.ELEMENT:
            far = f"abs(CAST({place} AS BIGINT)) > len({items})"
            return {
                Cause.ELEMENT: _surely(f"{items} IS NOT NULL AND ({place} = 0 OR {far})"),
            }
        case Operator.TRY_ELEMENT:
            return {Cause.ELEMENT: _surely(f"{items} IS NOT NULL AND {place} = 0")}
        case Operator.SLICE:
            known = " AND ".join(f"{text} IS NOT NULL" for text in texts)
            return {Cause.SLICE: _surely(f"{known} AND ({place} = 0 OR {texts[2]} < 0)")}
    return {}


def _unless_it_fits(term: Operation, texts: Sequence[str], names: Names) -> Tests:
    """Return the test whether a number is NULL because it does not fit its type."""
    found, is_literal = term.operands[0].type, isinstance(term.operands[0], Literal)
    if found is None or not found.is_numeric or not term.type.is_numeric:
        return {}
    known = [f"{text} IS NOT NULL" for text in texts]
    if term.operator is Operator.CAST:
        if is_literal or term.type.kind in _FRACTIONS or _is_wider(term.type, found):
            return {}
        if found.kind in _FRACTIONS and term.type.kind == "DECIMAL":
            known = [_surely(f"isfinite({text})") for text in texts]  # else it is NULL in Spark
    return {Cause.SIZE: f"({' AND '.join(known)} AND ({part_text(term, names.texts)}) IS NULL)"}


def _is_wider(type: DataType, other: DataType) -> bool:
    """Whether a type of exact numbers holds all values of another one."""
    if other.kind in _FRACTIONS:
        return False
    (precision, scale), (digits, places) = digits_of(type), digits_of(other)
    if type.is_integer and other.is_integer:
        return precision >= digits
    return not type.is_integer and precision - scale >= digits - places


def _case_tests(operator: Operator, tests: Sequence[Tests], texts: Sequence[str]) -> Tests:
    begin = 1 if operator is Operator.CASE_OF else 0
    pairs = range(begin, len(texts) - 1, 2)
    rest = tests[-1] if (len(texts) - begin) % 2 else {}
    for at in reversed(pairs):
        asked = f"{texts[0]} = {texts[at]}" if begin else texts[at]
        holds = _surely(asked)
        rest = _either(tests[at], _only(holds, tests[at + 1]), _only(f"NOT {holds}", rest))
    return _either(*tests[:begin], rest)


def _chained(tests: Sequence[Tests], goes_on: Sequence[str]) -> Tests:
    """Return the tests of operands each of which is asked only if those before it go on."""
    # Flat, since there may be hundreds, and DuckDB takes no text that is nested 1,000 times.
    found = [_only(" AND ".join(goes_on[:at]), own) if at else own for at, own in enumerate(tests)]
    return _either(*found)


def _surely(test: str) -> str:
    return f"coalesce({test}, false)"


def _only(condition: str, tests: Tests) -> Tests:
    return {cause: f"({condition} AND {test})" for cause, test in tests.items()}


def _either(*all_tests: Tests) -> Tests:
    found: dict[Cause, dict[str, None]] = {}
    for tests in all_tests:
        for cause, test in tests.items():
            found.setdefault(cause, {})[test] = None
    return {
        cause: next(iter(texts)) if len(texts) == 1 else f"({' OR '.join(texts)})"
        for cause, texts in sorted(found.items(), key=lambda pair: list(Cause).index(pair[0]))
    }
