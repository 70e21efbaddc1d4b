"""Subscriptions: the rows of a view and how they change, for as long as a reader listens."""
