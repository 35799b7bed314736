-- How long an event with its guests is kept after its end, when that is shorter than the settings say.
ALTER TABLE events ADD COLUMN keep_ms INTEGER;
CREATE INDEX events_kept ON events (expires_at + keep_ms) WHERE closing = 0 AND keep_ms IS NOT NULL;
