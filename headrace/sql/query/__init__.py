"""Queries of the SQL front door: tokens into a tree that knows its places, the tree into nodes."""
