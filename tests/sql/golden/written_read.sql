-- case: a stream that is written to a topic is read as its query
CREATE STREAM loud WITH (topic = 'loud.notes') AS SELECT upper(text) AS text FROM notes;
CREATE MATERIALIZED VIEW v AS SELECT text FROM loud
-- query: stream loud reads notes
-- from: notes
-- output: text = upper(text)
-- view: v, 0 us
-- from: notes
-- output: text = upper(text)
-- output: text = text
-- written: loud to loud.notes, key None

-- case: a key of its own, and another query below
CREATE VIEW short AS SELECT text FROM notes WHERE length(text) < 9;
CREATE STREAM s WITH (topic = 't', key = 'b') AS SELECT upper(text) AS a, length(text) AS b FROM short
-- query: view short reads notes
-- from: notes
-- where: length(text) < 9
-- output: text = text
-- query: stream s reads short
-- from: notes
-- where: length(text) < 9
-- output: text = text
-- output: a = upper(text)
-- output: b = length(text)
-- written: s to t, key b

-- case: a union and the elements of an array
CREATE STREAM parts WITH (topic = 'parts') AS
SELECT text, part FROM notes LATERAL VIEW explode(split(text, ' ')) p AS part
UNION ALL SELECT text, text FROM notes
-- query: stream parts reads notes
-- branch: 0
-- from: notes
-- generate: part = explode(split(text, ' '))
-- output: text = text
-- output: part = part
-- branch: 1
-- from: notes
-- output: text = text
-- output: part = text
-- union: of 2
-- written: parts to parts, key None

-- case: a key in another case, and a column list
CREATE STREAM s (Body) WITH (topic = 't', key = 'BODY') AS SELECT upper(text) FROM notes
-- query: stream s reads notes
-- from: notes
-- output: Body = upper(text)
-- written: s to t, key Body
