"""The text of a query into a tree whose nodes know where they stand."""
