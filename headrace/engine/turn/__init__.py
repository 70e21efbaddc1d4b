"""One turn of a unit: what it reads, how it goes, and the books it closes with."""
