-- The newest record of an account is its row; one without a value deletes it.
CREATE TABLE accounts (
  account STRING PRIMARY KEY,
  owner STRING NOT NULL,
  balance DECIMAL(12,2) NOT NULL,
  tags ARRAY<STRING>
) WITH (topic = 'accounts', format = 'upsert');

-- Other programs follow the accounts in a topic of their own, as Debezium would write it.
CREATE SINK account_changes FROM accounts WITH (topic = 'account_changes', mode = 'debezium');
