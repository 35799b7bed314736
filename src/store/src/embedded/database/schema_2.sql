-- `terms` is the sealed JSON of the event's terms and `webhook` its sealed URL alone, which each
-- of its deliveries copies; the other columns are what decisions need, in the clear.
-- `abandoned` counts the scans whose window passed without an answer up to `settled_at`.
-- `closing`: its time has passed, nobody sees it any more, and its registrations are going.
CREATE TABLE events (
    row           INTEGER PRIMARY KEY,
    id            BLOB NOT NULL UNIQUE,
    client        INTEGER NOT NULL REFERENCES clients,
    app           TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    is_active     INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    max_guests    INTEGER NOT NULL,
    registrations INTEGER NOT NULL DEFAULT 0 CHECK (registrations BETWEEN 0 AND max_guests),
    scans         INTEGER NOT NULL DEFAULT 0,
    abandoned     INTEGER NOT NULL DEFAULT 0 CHECK (abandoned BETWEEN 0 AND scans - registrations),
    settled_at    INTEGER NOT NULL DEFAULT 0,
    closing       INTEGER NOT NULL DEFAULT 0,
    origin        TEXT,
    webhook       BLOB,
    terms         BLOB NOT NULL
);
CREATE INDEX events_of_app ON events (app, created_at) WHERE closing = 0;
CREATE INDEX events_ended ON events (expires_at) WHERE closing = 0;
CREATE INDEX events_closing ON events (row) WHERE closing = 1;

-- A guest's outcome lives here and not in `results`: it is kept longer than the transaction.
-- `seq` counts from 1 without gaps within an event.
CREATE TABLE registrations (
    row         INTEGER PRIMARY KEY,
    event       INTEGER NOT NULL REFERENCES events,
    seq         INTEGER NOT NULL,
    txn         BLOB NOT NULL,
    verified_at INTEGER NOT NULL,
    outcome     BLOB NOT NULL,
    UNIQUE (event, seq)
);

ALTER TABLE transactions ADD COLUMN event INTEGER REFERENCES events;
CREATE INDEX transactions_of_event ON transactions (event, completed, expires_at) WHERE event IS NOT NULL;

-- refused: why a guest who passed was not registered; 0 disabled, 1 expired, 2 full.
-- registration: the row that has the outcome instead; it goes after this one.
ALTER TABLE results ADD COLUMN refused INTEGER;
ALTER TABLE results ADD COLUMN registration INTEGER;

-- The sealed URL of the event at the moment of queueing, when it is not the transaction's own.
ALTER TABLE deliveries ADD COLUMN address BLOB;

-- What the kept answer created: a transaction, or an event.
ALTER TABLE idempotency RENAME COLUMN txn TO subject;
