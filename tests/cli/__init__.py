"""Tests of the surfaces: command line, HTTP API, lock, demo, quickstart."""
