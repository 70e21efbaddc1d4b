"""Ask a running engine over its HTTP API; the same answers as `StoreDesk`, the same errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx
import pyarrow as pa

from headrace import errors
from headrace.errors import EngineError, HeadraceError, Unreachable
from headrace.project.lock import Address
from headrace.serve.http.values import ARROW, read_arrow
from headrace.store.base import MAX_ROWS, MAX_SECONDS

__all__ = ["EngineClient"]

_EXPORT_SECONDS = 600.0


class EngineClient:
    """A desk on the other side of loopback. Unreachable: the engine does not answer."""

    def __init__(self, address: Address) -> None:
        self._address = address
        # A query may take its whole time limit. No proxy: the token is for this machine alone.
        self._http = httpx.Client(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.token}"},
            timeout=httpx.Timeout(MAX_SECONDS + 10),
            trust_env=False,
        )

    def status(self) -> dict[str, Any]:
        """Return what is going on."""
        return dict(self._ask("GET", "/v1/status"))

    def sql(self, sql: str, *, max_rows: int = MAX_ROWS) -> dict[str, Any]:
        """Answer one reading statement. QueryRefused."""
        return dict(self._ask("POST", "/v1/sql", {"sql": sql, "max_rows": max_rows}))

    def table(self, sql: str, *, max_rows: int = MAX_ROWS) -> pa.Table:
        """Answer one reading statement with its types. QueryRefused."""
        with self._reaching():
            response = self._http.post(
                "/v1/sql", json={"sql": sql, "max_rows": max_rows}, headers={"Accept": ARROW}
            )
            if response.status_code == httpx.codes.OK:
                return read_arrow(response.content)
            answer = response.json()
        raise _to_error(answer)

    def explain(self) -> list[dict[str, Any]]:
        """Return the plan of every view."""
        return list(self._ask("GET", "/v1/explain"))

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        """Let the engine export its ledger, or the rows of a physical table. StoreError."""
        self._export(sink, {"table": table})

    def export_view(self, sink: BinaryIO, view: str) -> None:
        """Let the engine export all rows of a view at one commit. QueryRefused, StoreError."""
        self._export(sink, {"view": view})

    def _export(self, sink: BinaryIO, question: dict[str, str | None]) -> None:
        asked = self._http.stream(
            "POST", "/v1/export", json=question, timeout=_EXPORT_SECONDS
        )  # the whole table is written before its first byte is sent
        with self._reaching(), asked as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _to_error(response.json())
            for chunk in response.iter_bytes():
                sink.write(chunk)

    def turns(self) -> list[dict[str, Any]]:
        """Return the last turns of the engine, newest first."""
        return list(self._ask("GET", "/v1/turns?last=600")["turns"])

    def control(self, kind: str, name: str, action: str) -> dict[str, Any]:
        """Pause or resume a view or a sink. UsageError: there is no such thing."""
        return dict(self._ask("POST", f"/v1/{kind}s/{quote(name, safe='')}/{action}"))

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _ask(self, method: str, path: str, question: object = None) -> Any:
        with self._reaching():
            response = self._http.request(method, path, json=question)
            answer = response.json()
        if response.status_code != httpx.codes.OK:
            raise _to_error(answer)
        return answer

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, ValueError) as error:
            raise Unreachable(
                f"the engine (pid {self._address.pid}, {self._address.url}) does not answer: "
                f"{error}. If it has just ended, ask again."
            ) from error


def _to_error(answer: dict[str, str]) -> HeadraceError:
    found = getattr(errors, answer.get("error", ""), None)
    known = isinstance(found, type) and issubclass(found, HeadraceError)
    # Those with more arguments than a message keep their text under the name they descend from.
    plain = known and "__init__" not in vars(found)
    error: HeadraceError = (found if plain and found else EngineError)(answer.get("message", ""))
    return error
