-- case: names that begin with an underscore, are empty, too long or hold a backquote
CREATE STREAM s (`_x` INT, `` INT, `a``b` INT, `ééééééééééééééééééééééééééééééééé` INT, ` ` INT);
CREATE MATERIALIZED VIEW v AS SELECT text AS `_y`, text AS ` ` FROM notes
-- error: case.sql:1:18: column name _x: names that start with _ are reserved; drop the underscore
-- error: case.sql:1:28: column name '': write at least one letter
-- error: case.sql:1:36: column name 'a`b': control characters and backquotes are not allowed in names
-- error: case.sql:1:48: column name 'ééééééééééééééééééééééééééééééééé' has 66 bytes in UTF-8; at most 63 are allowed
-- error: case.sql:1:89: column name ' ': write at least one letter
-- error: case.sql:2:46: output name _y: names that start with _ are reserved; drop the underscore; write AS y
-- error: case.sql:2:60: output name ' ': write at least one letter; write AS name

-- case: names of definitions are plain
CREATE STREAM `my stream` (x INT);
CREATE VIEW `my-view` AS SELECT text FROM notes;
CREATE MATERIALIZED VIEW `größe` AS SELECT text FROM notes;
CREATE SINK `a b` FROM v WITH (topic = 'x')
-- error: case.sql:1:15: stream name 'my stream': write a letter first, then letters, digits and underscores only
-- error: case.sql:2:13: view name 'my-view': write a letter first, then letters, digits and underscores only
-- error: case.sql:3:26: view name 'größe': write a letter first, then letters, digits and underscores only
-- error: case.sql:4:1: sink a b is fed by v, which is not a view
-- error: case.sql:4:13: sink name 'a b': write a letter first, then letters, digits and underscores only
