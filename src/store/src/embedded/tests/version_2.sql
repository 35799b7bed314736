-- Takes back what the versions after 2 have added to a file in which no flow and no delivery is.
DROP TABLE webhook_names;
DROP TABLE sessions;
DROP TABLE canary;
DROP TABLE deliveries;
DROP TABLE reports;
DROP TABLE fetches;
DROP TABLE flows;
ALTER TABLE apps DROP COLUMN urls;
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    txn         INTEGER NOT NULL UNIQUE REFERENCES transactions,
    origin      TEXT NOT NULL,
    queued_at   INTEGER NOT NULL,
    claimed_at  INTEGER,
    outcome     TEXT,
    status      INTEGER,
    duration_ms INTEGER,
    address     BLOB
);
