"""The only room that touches Spark: session, input, fold, turn, units."""
