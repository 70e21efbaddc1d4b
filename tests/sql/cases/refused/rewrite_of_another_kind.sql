CREATE STREAM s WITH (topic = 'loud', rewrite = 'always') AS SELECT upper(text) AS text FROM notes
-- error: 1:49: rewrite 'always' is not known; write 'new topic' (every edit writes all records anew, to a topic whose name ends with the version) or 'never' (an edit goes on in the same topic)
