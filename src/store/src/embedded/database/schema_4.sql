-- Flows that end upstream. `standing` is sealed: it names people and holds the secret of a URL.
-- `version` rises with every change; `lapses_at` is when an invitation ends that is still open;
-- `latest` names the report that polls show.
CREATE TABLE flows (
    row       INTEGER PRIMARY KEY,
    id        BLOB NOT NULL UNIQUE,
    client    INTEGER NOT NULL REFERENCES clients,
    app       TEXT NOT NULL,
    version   INTEGER NOT NULL DEFAULT 0,
    until     INTEGER NOT NULL,
    lapses_at INTEGER,
    latest    BLOB,
    standing  BLOB NOT NULL
);
CREATE INDEX flows_until ON flows (until);
CREATE INDEX flows_lapsing ON flows (lapses_at) WHERE lapses_at IS NOT NULL;

-- How a fetch under a wealth-data consent stands, by the digest of its name.
CREATE TABLE fetches (
    flow     INTEGER NOT NULL REFERENCES flows,
    name     BLOB NOT NULL,
    standing BLOB NOT NULL,
    PRIMARY KEY (flow, name)
) WITHOUT ROWID;

-- Sealed payloads, by the digest of their deduplication key; zeros for what ended nothing. One whose
-- delivery has not ended outlives its flow. The payload is last: it can be large, and whoever reads
-- what stands before it does not touch it.
CREATE TABLE reports (
    row     INTEGER PRIMARY KEY,
    flow    BLOB NOT NULL,
    name    BLOB NOT NULL,
    until   INTEGER NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE (flow, name)
);
CREATE INDEX reports_until ON reports (until);

-- The sealed URLs that an app has registered for its webhooks.
ALTER TABLE apps ADD COLUMN urls BLOB;

-- A delivery is of a transaction or of a report; positions go on where they were.
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    txn         INTEGER UNIQUE REFERENCES transactions,
    report      INTEGER UNIQUE REFERENCES reports,
    origin      TEXT NOT NULL,
    queued_at   INTEGER NOT NULL,
    claimed_at  INTEGER,
    outcome     TEXT,
    status      INTEGER,
    duration_ms INTEGER,
    address     BLOB,
    CHECK ((txn IS NULL) <> (report IS NULL))
);
INSERT INTO outbox (id, txn, origin, queued_at, claimed_at, outcome, status, duration_ms, address)
    SELECT id, txn, origin, queued_at, claimed_at, outcome, status, duration_ms, address FROM deliveries;
DELETE FROM sqlite_sequence WHERE name = 'outbox';
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox', seq FROM sqlite_sequence WHERE name = 'deliveries';
DROP TABLE deliveries;
ALTER TABLE outbox RENAME TO deliveries;
CREATE INDEX deliveries_queued ON deliveries (id) WHERE claimed_at IS NULL;
CREATE INDEX deliveries_queued_by_origin ON deliveries (origin, id) WHERE claimed_at IS NULL;
CREATE INDEX deliveries_in_flight ON deliveries (id) WHERE claimed_at IS NOT NULL AND outcome IS NULL;
