CREATE VIEW a AS SELECT x FROM b;
CREATE VIEW b AS SELECT x FROM c;
CREATE VIEW c AS SELECT x FROM a
-- error: 1:13: definitions cannot read each other in a circle: a reads b, b reads c, c reads a; let one of them read a stream instead
