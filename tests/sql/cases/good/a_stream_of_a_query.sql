CREATE STREAM a_stream_of_a_query_loud AS SELECT upper(text) AS text, stars FROM notes WHERE stars > 1;
CREATE MATERIALIZED VIEW a_stream_of_a_query AS SELECT text, count(*) AS n FROM a_stream_of_a_query_loud GROUP BY text;
