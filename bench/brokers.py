"""Kafka brokers for benchmarks: the ones that the tests start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "brokers"))

from broker import resolve_jars, run_broker
from jars import resolve

__all__ = ["resolve", "resolve_jars", "run_broker"]
