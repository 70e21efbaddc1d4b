"""How records reach the folds: the short turn in the driver, the long one in Spark's tasks."""
