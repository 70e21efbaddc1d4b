"""Ask a project's desk so that Ctrl-C is heard while the answer is worked out."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.serve.access import open_desk

if TYPE_CHECKING:
    from headrace.project.config import Config
    from headrace.serve.desk import Desk

__all__ = ["ask_desk"]

T = TypeVar("T")


def ask_desk(config: "Config", question: "Callable[[Desk], T]") -> T:
    """Return the answer. What the question raises is raised here; KeyboardInterrupt ends it.

    The desk is opened for this question alone: what waits for a person must not keep an engine
    from starting.
    """
    answers: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(question(desk))
        except BaseException as error:  # noqa: BLE001 - raised below, by the thread that waits
            failures.append(error)

    # A query is one call into DuckDB, and Python hears no signal in there. So another thread makes
    # it; closing the desk, on the way out of the block, ends it.
    with open_desk(config) as desk:
        worker = threading.Thread(target=work, name="question", daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(0.05)
    if failures:
        raise failures[0]
    return answers[0]
