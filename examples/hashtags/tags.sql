-- What people post. A client that is not sure whether a post was taken sends it again.
CREATE STREAM posts (
  id STRING NOT NULL,
  author STRING,
  hashtags ARRAY<STRING>,
  posted_at TIMESTAMP NOT NULL,
  WATERMARK FOR posted_at AS posted_at - INTERVAL 10 SECONDS
) WITH (key = 'author', unique = 'id', unique_within = '1 hour');

-- A row for each hashtag of a post.
CREATE STREAM tags AS
SELECT author, lower(tag) AS tag, posted_at FROM posts LATERAL VIEW explode(hashtags) t AS tag;

-- How often each tag was used in the last five minutes, told every minute.
CREATE MATERIALIZED VIEW tag_counts AS
SELECT window.start AS since, window.end AS until, tag, count(*) AS uses,
  count(DISTINCT author) AS authors
FROM tags
GROUP BY window(posted_at, '5 minutes', '1 minute'), tag;

-- The three most frequent ones, as one row per window.
CREATE MATERIALIZED VIEW trending AS
SELECT window.start AS since, window.end AS until, approx_top_k(tag, 3) AS top
FROM tags
GROUP BY window(posted_at, '5 minutes', '1 minute');
