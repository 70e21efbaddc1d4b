-- Every page that a browser loaded, as the web server tells it.
CREATE STREAM page_views (
  url STRING NOT NULL,
  visitor STRING,
  ms INT,
  ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (key = 'visitor');

-- The parts of the address that the views ask for.
CREATE STREAM pages AS
SELECT parse_url(url, 'PATH') AS page, parse_url(url, 'QUERY', 'ref') AS came_from, visitor, ms, ts
FROM page_views;

CREATE MATERIALIZED VIEW views_per_minute
WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS minute, page, count(*) AS views, count(DISTINCT visitor) AS visitors,
  round(avg(ms), 1) AS mean_ms
FROM pages
GROUP BY window(ts, '1 minute'), page;

-- Where visitors come from, over all time.
CREATE MATERIALIZED VIEW sources AS
SELECT coalesce(came_from, 'direct') AS source, count(*) AS views FROM pages GROUP BY ALL;
