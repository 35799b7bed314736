-- What operators set for a client: since when it is suspended, and its limits as JSON.
ALTER TABLE clients ADD COLUMN suspended_at INTEGER;
ALTER TABLE clients ADD COLUMN limits TEXT;
