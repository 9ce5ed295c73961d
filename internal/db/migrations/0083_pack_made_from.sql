-- +goose Up
-- oldest: 0060

-- The generation whose packs housekeeping made a pack from, 0 for a pack of new objects.
-- A node that has the packs of this generation need not wait for the new one.
ALTER TABLE bucket_packs ADD COLUMN made_from BIGINT NOT NULL DEFAULT 0;
