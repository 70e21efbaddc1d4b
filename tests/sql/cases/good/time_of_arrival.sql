CREATE STREAM time_of_arrival_notes (
  author STRING, stars INT, WATERMARK FOR _arrival AS _arrival - INTERVAL 5 SECONDS
) WITH (topic = 'notes');
CREATE MATERIALIZED VIEW time_of_arrival AS
SELECT window.start AS start, author, sum(stars) AS stars
FROM time_of_arrival_notes GROUP BY window(_arrival, '1 minute'), author;
