-- An entry of the audit log may be sealed under another key. What it says is held by its hash.
DROP TRIGGER audit_log_changed;
CREATE TRIGGER audit_log_changed BEFORE UPDATE OF number, previous, hash ON audit_log
    BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
