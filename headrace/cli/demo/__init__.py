"""`headrace demo`: a shop, its traffic, and a live view of both."""
