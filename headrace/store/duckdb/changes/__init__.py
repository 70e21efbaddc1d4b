"""How rows of views change: made in the commit, kept while somebody reads them, read by token."""
