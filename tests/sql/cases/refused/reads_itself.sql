CREATE VIEW a AS SELECT x FROM a
-- error: 1:13: a definition cannot read itself: a reads a; let one of them read a stream instead
