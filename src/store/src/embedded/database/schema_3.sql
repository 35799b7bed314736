-- One box by which the file knows the keys that it was written under.
CREATE TABLE canary (
    row INTEGER PRIMARY KEY CHECK (row = 1),
    box BLOB NOT NULL
);
