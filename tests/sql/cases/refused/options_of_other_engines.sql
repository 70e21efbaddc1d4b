CREATE STREAM a (x INT) WITH (topic = 'a' key = 'id');
CREATE STREAM b (x INT) WITH (topic = 'b', partitions = 3, versioned = true, key = x);
-- error: 1:43: a comma is missing before key; write one
-- error: 2:44: CREATE STREAM has no option partitions; remove it: `headrace topics create` makes a topic with its partitions
-- error: 2:60: option versioned is not built yet: there are no tables yet; remove it
-- error: 2:84: the value of option key is written in quotes: key = '...'
