-- Whose webhook a deduplication key is, by the key's digest: an upstream may report the same consent
-- or fetch under two flows of an app, and a key has one webhook.
CREATE TABLE webhook_names (
    name  BLOB PRIMARY KEY,
    flow  BLOB NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX webhook_names_until ON webhook_names (until);
