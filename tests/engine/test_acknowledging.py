"""Answers of Java are acknowledged before they are read, whatever their size.

Method: texts of many sizes are asked of a real Java; the connection that asks is the patched one.
"""

import socket
import sys
from typing import Any

import pytest

from headrace.engine.spark.acknowledging import QuickAnswers, acknowledge_at_once
from headrace.engine.spark.session import start_spark

pytestmark = pytest.mark.spark


@pytest.mark.skipif(sys.platform != "linux", reason="other systems put nothing off")
@pytest.mark.parametrize("size", [0, 1, 8_000, 9_000, 300_000])
def test_every_answer_is_acknowledged_at_once(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledged = []
    read = QuickAnswers.readline

    def noting(stream: QuickAnswers, *limit: int) -> bytes:
        line = read(stream, *limit)
        own: Any = stream
        acknowledged.append(own._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))
        return line

    monkeypatch.setattr(QuickAnswers, "readline", noting)
    jvm: Any = start_spark()._jvm
    text = "x" * size + "é\n"
    assert jvm.java.util.Objects.requireNonNull(text) == text
    assert acknowledged


def test_connections_are_changed_once() -> None:
    from py4j.clientserver import ClientServerConnection

    acknowledge_at_once()
    before = ClientServerConnection.connect_to_java_server
    acknowledge_at_once()
    assert ClientServerConnection.connect_to_java_server is before
