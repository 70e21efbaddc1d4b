"""The harness that pipelines are tested with, and the contract suites of log and store."""

from headrace.testing.harness import Harness, harness

__all__ = ["Harness", "harness"]
