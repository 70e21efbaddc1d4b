-- oracle: spark
CREATE MATERIALIZED VIEW try_casts AS
SELECT id, TRY_CAST(body AS INT) AS whole, TRY_CAST(body AS DECIMAL(10,2)) AS exact, TRY_CAST(shop
  AS BOOLEAN) AS flag FROM orders;
