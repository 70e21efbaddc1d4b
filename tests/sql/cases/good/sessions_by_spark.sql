CREATE MATERIALIZED VIEW sessions_by_spark AS
SELECT user, window.start AS began, upper(min(page)) AS first_page, reverse(max(page)) AS back
FROM clicks GROUP BY session_window(ts, '20 seconds'), user;
