-- case: a unique id without a horizon
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id')
-- error: case.sql:1:100: unique = 'id' needs a horizon, since ids are not remembered for ever; write unique_within = '1 hour'

-- case: a horizon without a unique id
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique_within = '1 hour')
-- error: case.sql:1:107: unique_within of a has no effect without a unique id; write unique = '<column>' as well, or remove it

-- case: a place for duplicates without a unique id
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (duplicates = 'topic')
-- error: case.sql:1:104: duplicates of a has no effect without a unique id; write unique = '<column>' as well, or remove it

-- case: a horizon of nothing
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '0 seconds')
-- error: case.sql:1:122: unique_within: '0 seconds' is not positive, so no record would be a duplicate; write how long ids are remembered, such as '1 hour'

-- case: a negative horizon
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '-1 hour')
-- error: case.sql:1:122: unique_within: '-1 hour' is negative; write 0 or more

-- case: a horizon that is no duration
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = 'for ever')
-- error: case.sql:1:122: unique_within: 'for ever' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a unique id that is no column
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'ids', unique_within = '1 hour')
-- error: case.sql:1:100: unique 'ids' is not a column of a (did you mean id?)

-- case: a unique id that may be missing
CREATE STREAM a (id STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour')
-- error: case.sql:1:91: unique 'id': records without an id cannot be told apart; write id STRING NOT NULL

-- case: a unique id of a type whose values may look the same and differ
CREATE STREAM a (id DOUBLE NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour')
-- error: case.sql:1:100: unique 'id': values of DOUBLE cannot be compared exactly; write id STRING NOT NULL, which takes any value as its text

-- case: a unique id of several values
CREATE STREAM a (id ARRAY<STRING> NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour')
-- error: case.sql:1:107: unique 'id': values of ARRAY<STRING> cannot be compared exactly; write id STRING NOT NULL, which takes any value as its text

-- case: a unique id without an event time, and several problems at once
CREATE STREAM a (id MAP<STRING, INT>) WITH (unique = 'id', unique_within = '0 days', duplicates = 'keep')
-- error: case.sql:1:54: unique 'id': values of MAP<STRING, INT> cannot be compared exactly; write id STRING NOT NULL, which takes any value as its text
-- error: case.sql:1:54: unique needs the event time of a, whose clock measures how long ids are remembered; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS
-- error: case.sql:1:76: unique_within: '0 days' is not positive, so no record would be a duplicate; write how long ids are remembered, such as '1 hour'
-- error: case.sql:1:99: duplicates = 'keep' is not known; write 'drop', which counts them, or 'topic', which also keeps them in a.duplicate

-- case: the topic of duplicates is read by the same project
CREATE STREAM a (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour', duplicates = 'topic');
CREATE STREAM b (id STRING) WITH (topic = 'a.duplicate')
-- error: case.sql:2:1: stream b reads a.duplicate, a side topic of this project: the records that are put aside there would come back; read it from another project
