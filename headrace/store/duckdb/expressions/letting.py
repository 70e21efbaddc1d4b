"""SQL that uses a value several times, without writing it as often."""

from collections.abc import Callable, Sequence

__all__ = ["let"]

#: What is shorter is repeated; what is longer would double with every level of nesting.
_SHORT = 160


def let(values: Sequence[str], say: Callable[..., str], *, always: bool = False) -> str:
    """Return what `say` makes of values; if they are long, they are worked out once, by name."""
    if not always and all(len(value) <= _SHORT for value in values):
        return say(*(f"({value})" for value in values))
    names = [f"v{at}" for at in range(len(values))]
    fields = ", ".join(f"{name} := {value}" for name, value in zip(names, values, strict=True))
    body = say(*(f"x.{name}" for name in names))
    return f"list_transform([struct_pack({fields})], lambda x: {body})[1]"
