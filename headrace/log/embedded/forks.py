"""What a forked child must begin anew: locks that a thread of its parent may have held.

A child has one thread, whatever its parent had; a lock that another one held at that moment is held
for ever. Promise: whoever asked is called in every child, before anything else runs there, for as
long as it is alive; asking does not keep it alive.
"""

import os
from collections.abc import Callable
from weakref import WeakMethod

__all__ = ["call_in_children"]

_methods: set[WeakMethod[Callable[[], None]]] = set()


def call_in_children(method: Callable[[], None]) -> None:
    """Call a method of an object in every child that is forked from now on."""
    _methods.add(WeakMethod(method, _methods.discard))


def _call_all() -> None:
    for reference in list(_methods):
        if (method := reference()) is not None:
            method()


os.register_at_fork(after_in_child=_call_all)
