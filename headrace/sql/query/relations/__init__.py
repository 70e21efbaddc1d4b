"""What FROM names: streams, named queries, queries in parentheses, windows and generators."""
