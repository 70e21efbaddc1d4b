"""Clocks, windows and lateness: plain arithmetic and expressions, no Spark session."""
