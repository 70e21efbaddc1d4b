"""Versions of definitions: what changed, and what is swapped in together."""
