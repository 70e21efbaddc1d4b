CREATE VIEW a AS SELECT x FROM b;
CREATE VIEW b AS SELECT x FROM c;
CREATE VIEW c AS SELECT x FROM a
-- error: 1:13: definitions cannot form a cycle: a reads b, b reads c, c reads a; let one of them read a stream instead
