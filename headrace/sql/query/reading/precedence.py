"""Which operators bind closer: Spark's order, where sqlglot's tree has another.

sqlglot takes `a || b + 1` for `a || (b + 1)`, and Spark for `(a || b) + 1`. That makes no
difference to an expression that Spark gets as its text, but where a part of it is taken by itself.
"""

from collections.abc import Iterator

from sqlglot import exp

__all__ = ["regrouped_operand", "regrouping_operator"]

#: From those that bind closest. Operators of one line are taken from left to right.
_ORDER: tuple[tuple[type[exp.Expr], ...], ...] = (
    (exp.Neg, exp.BitwiseNot),
    (exp.Mul, exp.Div, exp.Mod, exp.IntDiv),
    (exp.Add, exp.Sub, exp.DPipe),
    (exp.BitwiseLeftShift, exp.BitwiseRightShift),
    (exp.BitwiseAnd,),
    (exp.BitwiseXor,),
    (exp.BitwiseOr,),
    (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    (exp.Between, exp.ILike, exp.In, exp.Is, exp.Like, exp.NullSafeNEQ, exp.RegexpLike),
    (exp.Not,),
    (exp.And,),
    (exp.Or,),
)
_LEVELS = {kind: level for level, kinds in enumerate(_ORDER) for kind in kinds}
#: The arguments of operators that no parentheses stand around.
_SIDES = ("this", "expression", "low", "high")


def regrouped_operand(operator: exp.Expr) -> exp.Expr | None:
    """Return the operand of an operator that Spark takes for no operand of it; None: none."""
    for side in _SIDES:
        operand = operator.args.get(side)
        if isinstance(operand, exp.Expr) and _regroups(operator, operand, side):
            return operand
    return None


def regrouping_operator(node: exp.Expr) -> exp.Expr | None:
    """Return an operator beside a node that Spark gives a part of it to; None: there is none."""
    return next((each for each, side in _operators_around(node) if _regroups(each, node, side)),
                None)  # fmt: skip


def _operators_around(node: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the operators that a node is a part of, without parentheses, and on which side."""
    while node.parent is not None and type(node.parent) in _LEVELS and node.arg_key in _SIDES:
        yield node.parent, node.arg_key
        node = node.parent


def _regroups(operator: exp.Expr, operand: exp.Expr, side: str) -> bool:
    own, other = _LEVELS.get(type(operator)), _LEVELS.get(type(operand))
    if own is None or other is None:
        return False
    # AND and OR mean the same from either end.
    is_first = side == "this" or isinstance(operator, exp.And | exp.Or)
    return other > own or (other == own and not is_first)
