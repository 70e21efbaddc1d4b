CREATE STREAM s (x INT, X STRING)
-- error: 1:25: column X stands twice (upper and lower case do not count); rename one
