CREATE MATERIALIZED VIEW v AS SELECT o.buyer.home.citi AS city FROM orders o WHERE o.buyer.home.zipp = '1'
-- error: 1:51: o.buyer.home has no field citi (did you mean city?); its fields are city, zip
-- error: 1:97: o.buyer.home has no field zipp (did you mean zip?); its fields are city, zip
