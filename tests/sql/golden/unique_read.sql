-- case: a unique id with its horizon
CREATE STREAM clicks (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour')
-- stream: clicks (id STRING NOT NULL, ts TIMESTAMP NOT NULL) from clicks, time ts - 0 us, key None, timestamps None, unique id 3600000000 us drop

-- case: duplicates are kept, and the id's column is found in any case
CREATE STREAM clicks (Number DECIMAL(20,0) NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts)
WITH (unique = 'NUMBER', unique_within = '2 days 1 hour', duplicates = 'TOPIC')
-- stream: clicks (Number DECIMAL(20,0) NOT NULL, ts TIMESTAMP NOT NULL) from clicks, time ts - 0 us, key None, timestamps None, unique Number 176400000000 us topic

-- case: what is dropped is in no topic, so that name may be read
CREATE STREAM clicks (id BIGINT NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'id', unique_within = '1 hour');
CREATE STREAM others (id BIGINT) WITH (topic = 'clicks.duplicate')
-- stream: clicks (id BIGINT NOT NULL, ts TIMESTAMP NOT NULL) from clicks, time ts - 0 us, key None, timestamps None, unique id 3600000000 us drop
-- stream: others (id BIGINT) from clicks.duplicate, key None, timestamps None

-- case: a view over a stream with a unique id sees no duplicates
CREATE STREAM clicks (id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (unique = 'ID', unique_within = '1 hour');
CREATE MATERIALIZED VIEW v AS SELECT id FROM clicks WHERE id <> ''
-- stream: clicks (id STRING NOT NULL, ts TIMESTAMP NOT NULL) from clicks, time ts - 0 us, key None, timestamps None, unique id 3600000000 us drop
-- view: v, 0 us
-- from: clicks without duplicates by id within 3600000000 us
-- where: id <> ''
-- output: id = id
