"""The harness that pipelines are tested with, and the contract suites of log and store.

The harness is loaded when it is asked for: it brings the engine and Spark, which the suites of log
and store do without.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.harness import Harness, harness

__all__ = ["Harness", "harness"]


class _Testing(ModuleType):
    """The package. Function and module are both called `harness`; here the function has it."""

    @property
    def harness(self) -> Any:
        """The function that opens a harness."""
        from headrace.testing.harness import harness as open_harness

        return open_harness

    @harness.setter
    def harness(self, _: ModuleType) -> None:
        """Leave the name alone when the import of the module would take it."""

    @property
    def Harness(self) -> Any:  # noqa: N802 - the name of the class
        """The class of harnesses."""
        from headrace.testing.harness import Harness as HarnessClass

        return HarnessClass


sys.modules[__name__].__class__ = _Testing
