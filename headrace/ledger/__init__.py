"""The book of what was done: turns, positions, clocks, counters, versions, epochs, outbox."""
