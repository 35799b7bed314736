CREATE TABLE clients (
    row        INTEGER PRIMARY KEY,
    client_id  TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    balance    INTEGER NOT NULL DEFAULT 0 CHECK (balance >= 0),
    entries    INTEGER NOT NULL DEFAULT 0
);

-- `record` is the sealed JSON of the app: its webhook URLs can hold secrets.
CREATE TABLE apps (
    row        INTEGER PRIMARY KEY,
    app_id     TEXT NOT NULL UNIQUE,
    client     INTEGER NOT NULL REFERENCES clients,
    created_at INTEGER NOT NULL,
    record     BLOB NOT NULL
);
CREATE INDEX apps_of_client ON apps (client, created_at);

CREATE TABLE keys (
    row          INTEGER PRIMARY KEY,
    key_id       TEXT NOT NULL UNIQUE,
    digest       BLOB NOT NULL UNIQUE,
    client       INTEGER NOT NULL REFERENCES clients,
    label        TEXT NOT NULL,
    environments TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER
);
CREATE INDEX keys_of_client ON keys (client, created_at);

-- kind: 0 grant, 1 debit, 2 adjust. A debit's reference is the 16 bytes of its transaction's id,
-- and the transaction's own row keeps it unique.
CREATE TABLE ledger (
    client        INTEGER NOT NULL REFERENCES clients,
    seq           INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    amount        INTEGER NOT NULL,
    balance_after INTEGER NOT NULL CHECK (balance_after >= 0),
    reference     BLOB NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (client, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ledger_references ON ledger (client, kind, reference) WHERE kind <> 1;

-- `terms` is the sealed JSON of what was asked for; `origin` is where its webhook goes, without
-- the path.
CREATE TABLE transactions (
    row        INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    client     INTEGER NOT NULL REFERENCES clients,
    app        TEXT NOT NULL,
    opened_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    completed  INTEGER NOT NULL DEFAULT 0,
    origin     TEXT,
    terms      BLOB NOT NULL
);
CREATE INDEX transactions_waiting ON transactions (expires_at) WHERE completed = 0;

CREATE TABLE results (
    txn         INTEGER PRIMARY KEY REFERENCES transactions,
    verified_at INTEGER NOT NULL,
    until       INTEGER NOT NULL,
    passed      INTEGER NOT NULL,
    answer      BLOB NOT NULL,
    outcome     BLOB NOT NULL
);
CREATE INDEX results_until ON results (until);

CREATE TABLE credentials (
    digest BLOB PRIMARY KEY,
    txn    BLOB NOT NULL,
    until  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX credentials_until ON credentials (until);

CREATE TABLE idempotency (
    row     INTEGER PRIMARY KEY,
    scope   BLOB NOT NULL UNIQUE,
    request BLOB NOT NULL,
    txn     BLOB NOT NULL,
    until   INTEGER NOT NULL,
    answer  BLOB NOT NULL
);
CREATE INDEX idempotency_until ON idempotency (until);

-- Queued while `claimed_at` is null, claimed while `outcome` is null, then ended. AUTOINCREMENT:
-- a position is never used twice, so a reader that remembers one misses nothing.
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    txn         INTEGER NOT NULL UNIQUE REFERENCES transactions,
    origin      TEXT NOT NULL,
    queued_at   INTEGER NOT NULL,
    claimed_at  INTEGER,
    outcome     TEXT,
    status      INTEGER,
    duration_ms INTEGER
);
CREATE INDEX deliveries_queued ON deliveries (id) WHERE claimed_at IS NULL;
CREATE INDEX deliveries_queued_by_origin ON deliveries (origin, id) WHERE claimed_at IS NULL;
CREATE INDEX deliveries_in_flight ON deliveries (id) WHERE claimed_at IS NOT NULL AND outcome IS NULL;

-- One row that a health check rewrites, and room that it asks for and gives back.
CREATE TABLE probe (
    row INTEGER PRIMARY KEY,
    at  INTEGER NOT NULL,
    pad BLOB
);
INSERT INTO probe (row, at) VALUES (1, 0);
