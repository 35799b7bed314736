-- The newest refused requests of each app, sealed.
CREATE TABLE refusals (
    row INTEGER PRIMARY KEY,
    app TEXT    NOT NULL,
    at  INTEGER NOT NULL,
    box BLOB    NOT NULL
);
CREATE INDEX refusals_of_app ON refusals (app, at);
CREATE INDEX refusals_at ON refusals (at);
