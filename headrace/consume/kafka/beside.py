"""Calls of librdkafka that wait for Kafka as long as it takes, made in a thread beside ours."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["call_beside"]

T = TypeVar("T")


def call_beside(call: Callable[[], T], name: str) -> "Future[T]":
    """Call it in a thread of its own, which does not keep the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised by who asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
