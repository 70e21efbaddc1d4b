"""Queries of others, answered in child processes that the operating system holds to their limits.

The engine hands each child the columns that a query reads, as Arrow files without a name in shared
memory, and gets the answer in another such file. No text of a query is parsed in the engine.
"""
