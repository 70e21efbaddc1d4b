DROP VIEW v
-- error: 1:1: DROP is not a definition; delete the statement that creates it
