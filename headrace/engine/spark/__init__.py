"""Spark itself: Java, the session, its errors in our words, and what it says of types."""
