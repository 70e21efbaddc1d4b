"""An expression as a term, if all of its parts are proven to mean the same everywhere."""

from sqlglot import exp

from headrace.model.functions import Function, unit_of
from headrace.plan.finals.arguments import fault_of, is_exact
from headrace.plan.finals.casting import cast_fault
from headrace.plan.finals.decimals import MAX_NEGATED, decimal_fault
from headrace.plan.finals.intervals import parse_interval
from headrace.plan.finals.reading import OPERATORS, Expression, Names, call_of, operands_of
from headrace.plan.terms import Literal, Operation, Operator, Reference, Term
from headrace.schema.types import DataType, parse_type
from headrace.sql.query.reading.precedence import regrouped_operand
from headrace.sql.query.reading.trees import path_of, strip_parentheses
from headrace.sql.stack import on_own_stack

__all__ = ["to_term"]

_ARITHMETIC = (exp.Add, exp.Div, exp.Mul, exp.Neg, exp.Sub)
_COMPARISONS = (
    exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NEQ, exp.NullSafeEQ, exp.Between, exp.In,
)  # fmt: skip
_BOOLEAN, _STRING = parse_type("BOOLEAN"), parse_type("STRING")
_BIGINT, _INT = parse_type("BIGINT"), parse_type("INT")
_WHEN_READ = "compute it when you read the view"
_MICROSECONDS_OF_DAY = 86_400_000_000


def to_term(expression: str, names: Names) -> Term:
    """Return Spark SQL over names as a term. ValueError: stores would mean something else by it."""

    def read() -> Term:
        written = Expression(expression)
        return _Translation(written, names).term(written.root)

    return on_own_stack(read)


class _Translation:
    """One expression on its way to a term."""

    def __init__(self, expression: Expression, names: Names) -> None:
        self.expression = expression
        self.names = names

    def term(self, tree: exp.Expr) -> Term:
        node = strip_parentheses(tree)
        if isinstance(node, exp.Null):
            return Literal(None)
        type = self.type(node)
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this), type=type)
        if isinstance(node, exp.Literal):
            return Literal(node.name, is_text=bool(node.is_string), type=type)
        if isinstance(node, exp.Column):
            return self._path(node)
        assert type is not None
        self._refuse_order(node)
        call = call_of(node)
        if call is not None:
            return self._call(node, *call, type)
        if isinstance(node, exp.Cast):
            return self._cast(node, type)
        if isinstance(node, exp.Is):
            return self._test(node)
        if isinstance(node, exp.Case):
            return self._case(node, type)
        if isinstance(node, exp.Dot):
            return self._field(self.term(node.this), node.expression.name, type, node)
        if isinstance(node, exp.Add | exp.Sub) and self._interval(node) is not None:
            return self._shifted(node, type)
        operator = OPERATORS.get(node.__class__)
        if operator is None or node.args.get("symmetric"):
            raise self._unknown(node)
        operands = operands_of(node)
        if isinstance(node, _ARITHMETIC):
            self._check_numbers(node, operands, type)
        elif isinstance(node, _COMPARISONS):
            self._check_alike(node, operands, ordered=True)
        else:
            self._check_conditions(operands)
        return Operation(operator, tuple(map(self.term, operands)), type)

    def type(self, node: exp.Expr) -> DataType | None:
        return self.expression.type_of(node, self.names)

    def say(self, node: exp.Expr) -> str:
        return self.expression.say(node, self.names)

    def _unknown(self, node: exp.Expr) -> ValueError:
        return ValueError(
            f"{self.say(node)} cannot be computed over aggregates or windows that overlap; "
            f"{_WHEN_READ}"
        )

    def _path(self, node: exp.Column) -> Term:
        first, *fields = (each.name for each in path_of(node))
        term: Term = Reference(first, self.names.references[first])
        for name in fields:
            assert term.type is not None
            found = dict(zip(map(str.lower, term.type.names), term.type.parts, strict=False))
            term = self._field(term, name, found.get(name.lower()), node)
        return term

    def _field(self, term: Term, name: str, type: DataType | None, node: exp.Expr) -> Term:
        if term.type is None or term.type.kind != "STRUCT" or type is None:
            raise self._unknown(node)
        exact = next(each for each in term.type.names if each.lower() == name.lower())
        return Operation(Operator.FIELD, (term, Literal(exact, is_text=True, type=_STRING)), type)

    def _refuse_order(self, node: exp.Expr) -> None:
        """Refuse operators in a row that Spark and this parser take in another order."""
        side = regrouped_operand(node)
        if side is not None:
            raise ValueError(f"{self.say(node)}: write parentheses around {self.say(side)}")

    def _call(
        self,
        node: exp.Expr,
        name: str,
        function: Function | None,
        arguments: list[exp.Expr],
        type: DataType,
    ) -> Term:
        is_taken = function is not None and function.fewest <= len(arguments) <= function.most
        if function is None or not is_taken or any(isinstance(a, exp.Lambda) for a in arguments):
            raise self._unknown(node)
        alike = []
        for at, argument in enumerate(arguments):
            word = function.word(at)
            if word in ("alike", "ordered"):
                alike.append(argument)
                continue
            fault = fault_of(word, argument, self.type(argument))
            if fault is not None:
                raise ValueError(
                    f"{self.say(node)}: {self.say(argument)} {fault}; {_WHEN_READ}, or apply "
                    f"{name} to the argument of the aggregate"
                )
        is_ordered = function.word(len(arguments) - 1) == "ordered"
        self._check_alike(node, alike, ordered=is_ordered)
        terms = list(map(self.term, arguments))
        operator = function.operator
        match operator:
            case Operator.REMAINDER | Operator.INTEGER_DIVIDE | Operator.TRY_REMAINDER:
                self._check_decimals(node, operator, arguments, type)
            case Operator.TRY_ADD | Operator.TRY_SUBTRACT | Operator.TRY_MULTIPLY:
                self._check_decimals(node, operator, arguments, type)
            case Operator.NEGATE | Operator.ABSOLUTE:
                self._check_negated(node, type)
            case Operator.TRY_DIVIDE:
                self._check_decimals(node, Operator.DIVIDE, arguments, type)
            case Operator.TRUNCATE_TIME:
                terms = self._truncated(node, terms, type)
            case Operator.SORT:
                if len(terms) == 2:
                    ascending = terms.pop()
                    assert isinstance(ascending, Literal)
                    operator = operator if ascending.value else Operator.SORT_DESCENDING
            case Operator.STRUCT | Operator.MAP:
                terms = self._made(node, operator, arguments, terms)
            case Operator.ELEMENT | Operator.TRY_ELEMENT | Operator.ITEM | Operator.HAS_ELEMENT:
                self._check_element(node, operator, arguments)
        if isinstance(node, exp.Like):
            found = Operation(operator, tuple(terms), _BOOLEAN)
            return Operation(Operator.NOT, (found,), _BOOLEAN) if node.args.get("negate") else found
        return Operation(operator, tuple(terms), type)

    def _truncated(self, node: exp.Expr, terms: list[Term], type: DataType) -> list[Term]:
        """Return the time and the unit, which stand in either order."""
        time, unit = sorted(terms, key=lambda each: isinstance(each, Literal))
        assert isinstance(unit, Literal)
        name = unit_of(str(unit.value))
        if type.kind == "DATE" and name not in ("year", "quarter", "month", "week"):
            raise self._unknown(node)
        return [time, Literal(name, is_text=True, type=_STRING)]

    def _made(
        self, node: exp.Expr, operator: Operator, arguments: list[exp.Expr], terms: list[Term]
    ) -> list[Term]:
        """Return what a struct or a map is made of."""
        if len(arguments) % 2:
            raise self._unknown(node)
        if not all(each.is_string for each in arguments[::2]):
            what = "keys" if operator is Operator.MAP else "names"
            raise ValueError(f"{self.say(node)}: over aggregates the {what} are texts, such as 'a'")
        if operator is Operator.STRUCT:
            return terms[1::2]
        self._check_alike(node, arguments[1::2])
        return terms

    def _check_element(self, node: exp.Expr, operator: Operator, arguments: list[exp.Expr]) -> None:
        group, found = self.type(arguments[0]), self.type(arguments[1])
        assert group is not None
        wanted = group.parts[0]
        if group.kind == "ARRAY" and operator is not Operator.HAS_ELEMENT:
            if found is not None and found.is_integer and found.kind != "BIGINT":
                return
            raise ValueError(f"{self.say(node)}: {self.say(arguments[1])} is not a place; write 1")
        if found != wanted or not wanted.is_orderable:
            raise ValueError(
                f"{self.say(node)}: {self.say(arguments[1])} is not {wanted.sql}, as the values "
                f"are; write CAST({self.say(arguments[1])} AS {wanted.sql})"
            )

    def _cast(self, node: exp.Cast, type: DataType) -> Term:
        operand = strip_parentheses(node.this)
        found = self.type(operand)
        if found is None or is_exact(operand, type):
            return Operation(Operator.CAST, (self.term(operand),), type)
        if node.args.get("safe") and type.kind != "DOUBLE":
            raise ValueError(
                f"{self.say(node)}: TRY_CAST cannot be computed over aggregates; {_WHEN_READ}"
            )
        fault = cast_fault(found, type)
        if fault is not None:
            raise ValueError(
                f"{self.say(node)}: {self.say(operand)} is {found.sql}, and over aggregates "
                f"{fault}; cast within the aggregate, such as max(CAST(... AS {type.sql})), or "
                f"when you read the view"
            )
        return Operation(Operator.CAST, (self.term(operand),), type)

    def _test(self, node: exp.Is) -> Term:
        operand = strip_parentheses(node.this)
        if isinstance(node.expression, exp.Null):
            return Operation(Operator.IS_NULL, (self.term(operand),), _BOOLEAN)
        self._check_conditions([operand])
        operator = Operator.IS_TRUE if node.expression.this else Operator.IS_FALSE
        return Operation(operator, (self.term(operand),), _BOOLEAN)

    def _case(self, node: exp.Case, type: DataType) -> Term:
        operands = operands_of(node)
        compared, branches = ([], operands) if node.this is None else (operands[:1], operands[1:])
        conditions = branches[: len(branches) // 2 * 2 : 2]
        values = branches[1::2] + (branches[-1:] if len(branches) % 2 else [])
        if compared:
            self._check_alike(node, compared + conditions, ordered=True)
        else:
            self._check_conditions(conditions)
        self._check_alike(node, values)
        operator = Operator.CASE_OF if compared else Operator.CASE
        return Operation(operator, tuple(map(self.term, operands)), type)

    def _interval(self, node: exp.Expr) -> exp.Interval | None:
        sides = [strip_parentheses(each) for each in (node.this, node.expression)]
        return next((each for each in sides if isinstance(each, exp.Interval)), None)

    def _shifted(self, node: exp.Expr, type: DataType) -> Term:
        """Return a time plus or minus an interval."""
        interval = self._interval(node)
        times = operands_of(node)
        is_odd = isinstance(node, exp.Sub) and strip_parentheses(node.this) is interval
        if interval is None or len(times) != 1 or is_odd:
            raise self._unknown(node)
        found = self.type(times[0])
        if found is None or found.kind not in ("DATE", "TIMESTAMP"):
            raise self._unknown(node)
        sign = -1 if isinstance(node, exp.Sub) else 1
        try:
            months, microseconds = parse_interval(interval)
        except ValueError as error:
            raise ValueError(f"{self.say(node)}: {error}") from error
        time = self.term(times[0])
        if months:
            amount = Literal(str(sign * months), type=_INT)
            return Operation(Operator.ADD_MONTHS, (time, amount), type)
        if type.kind == "DATE":
            days = Literal(str(sign * microseconds // _MICROSECONDS_OF_DAY), type=_INT)
            return Operation(Operator.ADD_DAYS, (time, days), type)
        amount = Literal(str(sign * microseconds), type=_BIGINT)
        return Operation(Operator.ADD_MICROSECONDS, (time, amount), type)

    def _check_numbers(self, node: exp.Expr, operands: list[exp.Expr], type: DataType) -> None:
        for operand in operands:
            found = self.type(operand)
            if found is not None and not found.is_numeric:
                raise ValueError(
                    f"{self.say(node)}: {self.say(operand)} is {found.sql}, and over "
                    f"aggregates only numbers are computed with; {_WHEN_READ}"
                )
        if isinstance(node, exp.Neg):
            self._check_negated(node, type)
        else:
            self._check_decimals(node, OPERATORS[node.__class__], operands, type)

    def _check_negated(self, node: exp.Expr, type: DataType) -> None:
        if type.kind == "DECIMAL" and type.precision > MAX_NEGATED:
            raise ValueError(
                f"{self.say(node)}: Spark rounds a {type.sql} when it changes the sign; write a "
                f"cast to fewer digits, such as CAST(... AS DECIMAL({MAX_NEGATED},2))"
            )

    def _check_decimals(
        self, node: exp.Expr, operator: Operator, operands: list[exp.Expr], type: DataType
    ) -> None:
        types = [self.type(operand) for operand in operands]
        if any(each is not None and each.kind == "DECIMAL" for each in types):
            if any(each is not None and each.kind in ("FLOAT", "DOUBLE") for each in types):
                return
            fault = decimal_fault(operator, types, type)
            if fault is not None:
                raise ValueError(
                    f"{self.say(node)}: {fault}; write CAST(... AS DOUBLE), or a cast to fewer "
                    f"digits, such as CAST(... AS DECIMAL(18,2))"
                )

    def _check_conditions(self, operands: list[exp.Expr]) -> None:
        for operand in operands:
            found = self.type(operand)
            if found is not None and found.kind != "BOOLEAN":
                raise ValueError(f"{self.say(operand)} is {found.sql}; write a condition")

    def _check_alike(
        self, node: exp.Expr, operands: list[exp.Expr], *, ordered: bool = False
    ) -> None:
        given = [each for each in operands if not isinstance(each, exp.Null)]
        types = [self.type(operand) for operand in given]
        # A text is read as what it stands beside; the first that is no text says what that is.
        first = next((at for at, each in enumerate(given) if not each.is_string), 0)
        for operand, type in zip(given, types, strict=True):
            wanted = types[first]
            assert type is not None
            assert wanted is not None
            if ordered and not type.is_orderable:
                raise ValueError(
                    f"{self.say(node)}: {self.say(operand)} is {type.sql}, whose values are not "
                    f"compared over aggregates; compare them when you read the view"
                )
            numbers = type.is_numeric and wanted.is_numeric
            alike = type.kind == wanted.kind if type.is_orderable else type == wanted
            if not (numbers or alike or (operand.is_string and is_exact(operand, wanted))):
                raise ValueError(
                    f"{self.say(node)}: {self.say(given[first])} is {wanted.sql} and "
                    f"{self.say(operand)} is {type.sql}, and over aggregates only numbers are "
                    f"converted; write both alike, such as max(CAST(... AS BIGINT)) > 5 or "
                    f"max(...) > TIMESTAMP '2026-01-01'"
                )
