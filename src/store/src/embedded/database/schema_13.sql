-- The people who operate the service: the digest of a token, and the sealed record.
CREATE TABLE operators (
    operator_id TEXT PRIMARY KEY,
    token       BLOB NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    box         BLOB NOT NULL
);
