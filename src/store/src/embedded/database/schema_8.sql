-- An app's events have places in the order in which they were created. `event_blocks` counts how many of
-- each 256 places are listed, so that any page of a long list is near at hand, and so is its length.
ALTER TABLE events ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
UPDATE events SET place = counted.place
    FROM (SELECT row, row_number() OVER (PARTITION BY app ORDER BY created_at, row) - 1 AS place FROM events) counted
    WHERE counted.row = events.row;
DROP INDEX events_of_app;
CREATE INDEX events_of_app ON events (app, place) WHERE closing = 0;
CREATE TABLE event_blocks (
    app    TEXT NOT NULL,
    block  INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    PRIMARY KEY (app, block)
) WITHOUT ROWID;
INSERT INTO event_blocks (app, block, listed) SELECT app, place / 256, count(*) FROM events WHERE closing = 0 GROUP BY 1, 2;
CREATE TRIGGER event_created AFTER INSERT ON events BEGIN
    INSERT INTO event_blocks (app, block, listed) VALUES (NEW.app, NEW.place / 256, 1)
        ON CONFLICT (app, block) DO UPDATE SET listed = listed + 1;
END;
CREATE TRIGGER event_closed AFTER UPDATE OF closing ON events WHEN OLD.closing = 0 AND NEW.closing = 1 BEGIN
    UPDATE event_blocks SET listed = listed - 1 WHERE app = NEW.app AND block = NEW.place / 256;
    DELETE FROM event_blocks WHERE app = NEW.app AND block = NEW.place / 256 AND listed = 0;
END;
