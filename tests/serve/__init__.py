"""What is served: the HTTP API and what it answers from."""
