CREATE STREAM s (x INT) WITH (unique = 'y', unique_within = '1 hour')
-- error: 1:40: unique 'y' is not a column of s
-- error: 1:40: unique needs the event time of s, whose clock measures how long ids are remembered; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS
