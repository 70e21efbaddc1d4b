"""The running engine's HTTP API on loopback, and the ways to reach it or do without it."""
