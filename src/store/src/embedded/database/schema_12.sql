-- What operators have changed, sealed; each row is chained to the one before by its hash.
CREATE TABLE audit_log (
    number   INTEGER PRIMARY KEY,
    previous BLOB NOT NULL,
    hash     BLOB NOT NULL,
    box      BLOB NOT NULL
);
CREATE TRIGGER audit_log_changed BEFORE UPDATE ON audit_log BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_cut BEFORE DELETE ON audit_log BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
