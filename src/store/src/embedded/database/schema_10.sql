-- When an import first did something for the client.
ALTER TABLE clients ADD COLUMN imported_at INTEGER;
