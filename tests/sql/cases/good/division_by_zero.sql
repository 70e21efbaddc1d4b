-- Where qty is 0 the record is dead for this view.
CREATE MATERIALIZED VIEW division_by_zero AS
SELECT id, 100 / qty AS share FROM orders WHERE units > 5 OR units IS NULL;
