"""Address and token of an engine: from arguments, the environment, or the folder of a project."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import Unreachable, UsageError

__all__ = ["TOKEN_VARIABLE", "URL_VARIABLE", "Address", "address_of", "address_of_project"]

URL_VARIABLE = "HEADRACE_URL"
TOKEN_VARIABLE = "HEADRACE_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class Address:
    """Where an engine answers; the token is not shown where the value is printed."""

    url: str
    token: str = field(default="", repr=False)

    @property
    def socket_url(self) -> str:
        """The same for WebSockets."""
        return f"ws{self.url.removeprefix('http')}"

    @property
    def headers(self) -> dict[str, str]:
        """What says who asks."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def address_of(url: str | None, token: str | None) -> Address:
    """Return the address from arguments or, without, from the environment. UsageError."""
    found = url or os.environ.get(URL_VARIABLE, "")
    if not found:
        raise UsageError(
            f"the address of the engine is missing: give url=, set {URL_VARIABLE}, or use "
            f"Client.of_project(FOLDER) on the machine where it runs"
        )
    if not found.startswith(("http://", "https://")):
        raise UsageError(f"{found!r} is no address of an engine; write http://HOST:PORT")
    known = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    return Address(found.rstrip("/"), known)


def address_of_project(folder: str | os.PathLike[str]) -> Address:
    """Return the address that a project's engine left. Unreachable: none runs."""
    file = Path(folder) / ".headrace" / "engine.json"
    try:
        found = json.loads(file.read_bytes())
        return Address(found["url"], found["token"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreachable(
            f"{folder}: no engine serves this project ({file} cannot be read); start one with "
            f"`headrace run`"
        ) from error
