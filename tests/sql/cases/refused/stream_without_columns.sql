CREATE STREAM s ()
-- error: 1:15: stream s has no columns; write (column TYPE, ...)
