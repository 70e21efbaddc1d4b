"""Clocks, windows, their placement and lateness: plain numbers, no dialect of SQL."""
