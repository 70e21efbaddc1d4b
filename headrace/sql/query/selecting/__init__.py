"""One SELECT over a relation: its outputs, its groups, DISTINCT."""
