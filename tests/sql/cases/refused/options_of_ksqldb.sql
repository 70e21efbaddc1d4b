CREATE STREAM s (a INT) WITH (kafka_topic = 's', value_format = 'json', timestamp = 'a', partitions = '4')
-- error: 1:31: CREATE STREAM has no option kafka_topic; write topic = '...'
-- error: 1:50: CREATE STREAM has no option value_format; write format = '...'
-- error: 1:73: CREATE STREAM has no option timestamp; write WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS among the columns
-- error: 1:90: CREATE STREAM has no option partitions; remove it: `headrace topics create` makes a topic with its partitions
