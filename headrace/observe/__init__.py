"""What is going on, and whether it is right: status and audit."""
