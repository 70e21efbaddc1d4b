"""Event logs into live, correct tables, on Spark, from Python and SQL.

The clients are loaded when they are asked for: `import headrace` brings nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("AsyncClient", "Client"):
        from headrace import client

        return getattr(client, name)
    raise AttributeError(f"module headrace has no attribute {name}")
