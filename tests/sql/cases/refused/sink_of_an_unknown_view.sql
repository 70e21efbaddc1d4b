CREATE SINK s FROM gone WITH (topic = 's')
-- error: 1:1: sink s is fed by gone, which is not a view
