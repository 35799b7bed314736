-- Sessions of people who have signed in, by the digest of their id. The box names a key, by its
-- digest, and an app.
CREATE TABLE sessions (
    digest     BLOB PRIMARY KEY,
    idle_until INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    box        BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_until ON sessions (idle_until);
