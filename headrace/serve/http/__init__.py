"""The engine's HTTP API: who may ask, and what is answered."""
