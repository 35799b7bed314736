-- What the webhook of a report tells, in words that are nobody's: the kind of the report, and how that
-- which it is about stood.
ALTER TABLE deliveries ADD COLUMN tells TEXT;
