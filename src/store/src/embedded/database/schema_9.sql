-- The profile and the authority under which the file was made, in one row.
CREATE TABLE installation (
    row        INTEGER PRIMARY KEY CHECK (row = 1),
    made_under TEXT NOT NULL
);
