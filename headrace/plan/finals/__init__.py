"""Expressions over merged aggregates as terms, which every store can say.

They are evaluated when a table is read, so a table at a position is a function of the state at
that position; a row on which an expression fails (a division by zero) is left out, and told among
the errors of its view.

Promise: what is accepted means in every store what it means in Spark. Spark tells the type of every
part; `model/functions.py` lists the functions and the types that each is proven for. Everything
else is refused here, and Spark evaluates it. This is the one folder behind the front doors that
parses: scalars are Spark SQL text, read by the front door's own parser.
"""

from headrace.plan.finals.deriving import derive_calls, is_for_spark, naming_fault
from headrace.plan.finals.reading import Names, names_in, say, typed_parts
from headrace.plan.finals.translating import to_term

__all__ = [
    "Names",
    "derive_calls",
    "is_for_spark",
    "names_in",
    "naming_fault",
    "say",
    "to_term",
    "typed_parts",
]
