-- The intent key that operators have chosen; without a row the settings decide.
CREATE TABLE intent_key (
    row   INTEGER PRIMARY KEY CHECK (row = 1),
    kid   TEXT NOT NULL,
    since INTEGER NOT NULL
);
