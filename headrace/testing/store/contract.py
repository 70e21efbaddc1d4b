"""What every store must do: subclass `StoreContract`, say how to make the store, run pytest.

    class TestMyStore(StoreContract):
        def make_store(self, path: Path) -> Store:
            return MyStore(path)

A store that is made again of the same path, after the first was closed or its process was killed,
must be the same store. The class has to be importable: one test kills a process that writes.
"""

from headrace.testing.store.asking import AskingContract
from headrace.testing.store.changes import ChangesContract
from headrace.testing.store.failing import FailingContract
from headrace.testing.store.laws import LawContract
from headrace.testing.store.manifests import ManifestContract
from headrace.testing.store.reading import ReadingContract
from headrace.testing.store.sessions import SessionContract
from headrace.testing.store.turns import TurnContract
from headrace.testing.store.windows import WindowContract
from headrace.testing.store.written import WrittenContract

__all__ = ["StoreContract"]


class StoreContract(
    TurnContract,
    SessionContract,
    ReadingContract,
    FailingContract,
    ManifestContract,
    WindowContract,
    WrittenContract,
    ChangesContract,
    AskingContract,
    LawContract,
):
    """The suite. `make_store` is the one method to write."""
