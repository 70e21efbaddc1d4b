"""How long a member or a consumer may be used: by the process that made it, until it is closed."""

import os

from headrace.errors import UsageError

__all__ = ["Lifetime"]


class Lifetime:
    """The life of one client, which began by being `made`; `again` is how to begin another."""

    def __init__(self, *, made: str, again: str) -> None:
        self._made = made
        self._again = again
        self._process = os.getpid()
        self.is_over = False

    def check(self, client: object) -> None:
        """Refuse to be used after the end, and in a forked child. UsageError."""
        if os.getpid() != self._process:
            raise UsageError(
                f"{client}: it was {self._made} by process {self._process} and this is its child; "
                f"{self._again} here, too."
            )
        if self.is_over:
            raise UsageError(f"{client}: it is closed; {self._again} anew.")

    def end(self) -> bool:
        """End it; False if it had ended, or in a forked child, which leaves its parent's alone."""
        if self.is_over or os.getpid() != self._process:
            return False
        self.is_over = True
        return True
