-- case: a key that says nothing, and one that is no column
CREATE STREAM s WITH (key = 'text') AS SELECT text FROM notes;
CREATE STREAM t WITH (topic = 't', key = 'texts') AS SELECT text FROM notes
-- error: case.sql:1:23: key of s has no effect without a topic; write topic = '...' as well, or remove it
-- error: case.sql:2:42: key 'texts' is not a column of t (did you mean text?)

-- case: topics that cannot be
CREATE STREAM s WITH (topic = 'headrace.time') AS SELECT text FROM notes;
CREATE STREAM t WITH (topic = 'a b') AS SELECT text FROM notes
-- error: case.sql:1:31: topic headrace.time: topics that start with headrace. are reserved for the engine; choose another
-- error: case.sql:2:31: topic 'a b': a topic has 1 to 249 letters, digits, dots, underscores and dashes

-- case: topics that others write
CREATE STREAM s WITH (topic = 'out') AS SELECT text FROM notes;
CREATE STREAM t WITH (topic = 'out') AS SELECT text FROM notes;
CREATE MATERIALIZED VIEW v AS SELECT text FROM notes;
CREATE SINK k FROM v WITH (topic = 'sunk');
CREATE STREAM u WITH (topic = 'sunk') AS SELECT text FROM notes;
CREATE STREAM w WITH (topic = 's.dead') AS SELECT text FROM notes
-- error: case.sql:2:1: stream t is written to out, as stream s at case.sql:1:1 is; their records could not be told apart, so give each its own topic
-- error: case.sql:5:1: stream u is written to sunk, as sink k at case.sql:4:1 is; their records could not be told apart, so give each its own topic
-- error: case.sql:6:1: stream w is written to s.dead, where this project puts records aside; choose another topic

-- case: a stream that reads what the project writes
CREATE STREAM s WITH (topic = 'loud') AS SELECT upper(text) AS text FROM notes;
CREATE STREAM again (text STRING) WITH (topic = 'loud');
CREATE MATERIALIZED VIEW v AS SELECT text FROM again
-- error: case.sql:2:1: stream again reads loud, which s at case.sql:1:1 is written to: it would see the records later and with other watermarks; read FROM s, which has the same rows, or read the topic from another project

-- case: a stream written to the topic that it reads
CREATE STREAM s WITH (topic = 'notes') AS SELECT upper(text) AS text FROM notes
-- error: case.sql:1:1: stream s is written to notes, which it reads as notes: its records would come back for ever; choose another topic

-- case: groups are no records
CREATE STREAM s WITH (topic = 'counts') AS SELECT text, count(*) AS n FROM notes GROUP BY text
-- error: case.sql:1:15: s is grouped, and the rows of a stream are records, not groups; write CREATE MATERIALIZED VIEW, or CREATE VIEW for a name alone

-- case: a sink of a stream that is written already
CREATE STREAM s WITH (topic = 'loud') AS SELECT upper(text) AS text FROM notes;
CREATE SINK k FROM s WITH (topic = 'k')
-- error: case.sql:2:1: sink k is fed by s, a stream whose records go to the topic loud already; remove the sink, or write CREATE MATERIALIZED VIEW name AS SELECT * FROM s, and the sink FROM that

-- case: writing anew
CREATE STREAM s WITH (topic = 'loud', rewrite = 'louder') AS SELECT upper(text) AS text FROM notes
-- error: case.sql:1:49: rewrite 'louder' is not known; write 'new topic' (every edit writes all records anew, to a topic whose name ends with the version) or 'never' (an edit goes on in the same topic)

-- case: a view has no topic
CREATE VIEW v WITH (topic = 'loud') AS SELECT upper(text) AS text FROM notes
-- error: case.sql:1:15: CREATE VIEW is a name for a query and has no options; write CREATE VIEW v AS SELECT ...

-- case: a name that another definition has
CREATE STREAM s WITH (topic = 'loud') AS SELECT upper(text) AS text FROM notes;
CREATE MATERIALIZED VIEW S AS SELECT text FROM notes
-- error: case.sql:2:1: S is defined at case.sql:1:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one
