"""Tables: what they ask of their topics, and how long turns fold them."""
