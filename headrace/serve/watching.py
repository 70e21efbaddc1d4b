"""Notice that definitions are edited while the engine runs: say so, or apply the edits.

Promises:
- Files are judged once they have stood still for a look: an editor may write them in pieces.
- Definitions that are refused, here or by Spark, change nothing: those that run go on, and the log
  says why.
- A look that fails is logged and repeated; it never stops the engine.
- Nothing is dropped: edits that remove a definition wait for a restart, and so do settings.
- What is applied is applied between two turns, as at a restart: edited views are built anew beside
  the old ones, which serve until the new ones are level.
"""

import logging
import threading

from headrace.errors import DefinitionError, HeadraceError
from headrace.model.definitions import Project
from headrace.observe.drift import RESTART, Drift
from headrace.project.disk import Signature
from headrace.serve.process import Served

__all__ = ["DefinitionsWatch"]

logger = logging.getLogger("headrace.run")

LOOK_SECONDS = 1.0
ADVICE = "restart, or `headrace run --watch`"


class DefinitionsWatch(threading.Thread):
    """Looks at the files every second until `stop` is set; `take` raises what stopped it before.

    `pause` is set when the engine is to be stopped: at the end, or because `take` has edits.
    """

    def __init__(
        self,
        served: Served,
        stop: threading.Event,
        *,
        applies: bool,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        super().__init__(name="definitions", daemon=True)
        self.pause = threading.Event()
        self._lock = threading.Lock()  # of `pause` and of the edits, which go together
        self._served = served
        self._stop_event = stop
        self._applies = applies
        self._look_seconds = look_seconds
        self._seen: Signature | None = None  # at the last look
        self._judged: Signature | None = None
        self._differed = False
        self._failed = ""  # how the last look failed
        self._edits: Project | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Look again and again."""
        try:
            while not self._stop_event.wait(self._look_seconds):
                self._try_look()
        except BaseException as error:  # noqa: BLE001 - the thread that runs the engine raises it
            self._failure = error
        with self._lock:
            self.pause.set()

    def take(self) -> Project | None:
        """Return the edits to be applied, once; None if there are none. Raises what failed here."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            edits, self._edits = self._edits, None
            # Once stopped it stays so: `run` sets the event that it finds at its end.
            if edits is not None and not self._stop_event.is_set():
                self.pause = threading.Event()
        return edits

    def _try_look(self) -> None:
        try:
            self._look()
        except (HeadraceError, OSError) as error:
            self._judged = None
            if str(error) != self._failed:  # once, not every second
                logger.warning("definitions cannot be compared now, trying again: %s", error)
            self._failed = str(error)
        else:
            self._failed = ""

    def _look(self) -> None:
        signature = self._served.disk.signature()
        settled = signature == self._seen
        self._seen = signature
        if not settled or signature == self._judged or self._edits is not None:
            return
        self._judged = signature
        drift = self._served.drift()
        if drift is None:
            if self._differed:
                logger.info("definitions on disk are those that run")
        elif drift.problems:
            refuse(drift)
        else:
            self._meet(drift)
        self._differed = drift is not None

    def _meet(self, drift: Drift) -> None:
        if not self._applies:
            logger.warning("%s: %s", drift.text(), ADVICE)
            return
        if drift.needs_restart:
            logger.warning("%s: %s", drift.text(), RESTART)
            return
        try:
            definitions = self._served.disk.definitions()
            self._served.plan(definitions)
        except DefinitionError as error:
            refuse(Drift((), tuple(map(str, error.problems))))
            return
        logger.info("%s: applied after this turn", drift.text())
        with self._lock:
            self._edits = definitions
            self.pause.set()


def refuse(drift: Drift) -> None:
    """Log why edited definitions are not applied."""
    logger.warning("%s; the running ones go on. `headrace check --types` shows all", drift.text())
