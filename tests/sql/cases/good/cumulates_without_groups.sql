CREATE MATERIALIZED VIEW cumulates_without_groups AS
SELECT user, window_end FROM CUMULATE(TABLE clicks, DESCRIPTOR(ts), '1 minute', '3 minutes');
