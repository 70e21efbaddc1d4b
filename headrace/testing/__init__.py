"""The harness that pipelines are tested with, and the contract suites of log and store.

The harness is loaded when it is asked for: it brings the engine and Spark, which the suites of log
and store do without.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.harness import Harness, harness

__all__ = ["Harness", "harness"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    # `import headrace.testing.harness` binds the module under the function's name: put both back.
    module = importlib.import_module("headrace.testing.harness")
    globals().update({public: getattr(module, public) for public in __all__})
    return globals()[name]
