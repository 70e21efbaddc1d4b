"""Tests of the clients of the log."""
