"""Rows of views for readers: what they ask for, and answers that say where they stand."""
