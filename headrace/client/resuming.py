"""What a subscription does between connections: where it goes on, how long it waits, when it ends.

Promises: what is yielded over all connections has no gap and no repeat. After `Reset` all rows come
anew: when the view's columns change, or when what it missed is not kept any more.
No input or output here: both clients run the same rules.
"""

import time
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from headrace.client.asking import Where, changes_path, listed, pause_before_retry, where_texts
from headrace.client.messages import Changes, Message, Progress, Reset, parse_message
from headrace.errors import (
    AccessDenied,
    EngineBusy,
    EngineError,
    HeadraceError,
    TokenRefused,
    Unreachable,
    UsageError,
    ViewNotFound,
)

__all__ = ["Resuming"]

_FINAL = {4400: UsageError, 4401: AccessDenied, 4403: AccessDenied, 4404: ViewNotFound}


class Resuming:
    """The state of one subscription. `token` is behind everything that was yielded."""

    def __init__(
        self,
        view: str,
        *,
        after: str | None,
        where: Where,
        columns: Sequence[str],
        snapshot: bool,
        patience_s: float | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = after
        self._view = view
        self._parameters = [("where", text) for text in where_texts(where)]
        self._parameters += [("columns", listed(columns))] if columns else []
        self._snapshot = snapshot
        self._patience_s = patience_s
        self._now = now
        self._heard_at = now()
        self._has_begun = False
        self._attempt = 0

    @property
    def path(self) -> str:
        """Where the next connection goes."""
        parameters = list(self._parameters)
        if self.token is not None:
            parameters.append(("after", self.token))
        elif not self._snapshot:
            parameters.append(("snapshot", "false"))
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{changes_path(self._view)}{query}"

    def received(self, text: str | bytes) -> Message | None:
        """Return what a frame says; None: the engine tells why it ends. Raises what is final."""
        try:
            message = parse_message(text)
        except TokenRefused:
            if not (self._has_begun and self._snapshot):
                raise
            self.token = None  # what was missed is gone: all rows come again
            return None
        except (AccessDenied, UsageError, ViewNotFound):
            raise
        except (EngineBusy, EngineError):
            return None  # TooSlow among them: what followed the token is still there
        self._has_begun = True
        self._heard_at, self._attempt = self._now(), 0
        match message:
            case Reset():
                self.token = None
            case Progress():
                self.token = message.token
            case Changes():
                self.token = message.token or self.token
        return message

    def ended(self, code: int | None, why: str) -> float:
        """Return how long to wait before the next connection. Raises what is final, Unreachable.

        `code` is what the engine closed with; None: the connection failed.
        """
        if code in _FINAL:
            raise _FINAL[code](why)
        silent_s = self._now() - self._heard_at
        gives_up = self._patience_s is not None and silent_s > self._patience_s
        if gives_up or (code is None and not self._has_begun):
            raise Unreachable(f"the engine cannot be reached: {why}")
        self._attempt += 1
        return pause_before_retry(self._attempt - 1)

    def refused(self, status: int, error: HeadraceError) -> float:
        """Return the same where a connection was refused with a status of HTTP."""
        if status < 500 and status != 429:
            raise error
        return self.ended(None if self._has_begun else 1013, str(error))
