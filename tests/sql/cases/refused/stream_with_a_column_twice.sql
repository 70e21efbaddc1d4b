CREATE STREAM s (x INT, X STRING)
-- error: 1:25: column X occurs twice (names are not case-sensitive); rename one
