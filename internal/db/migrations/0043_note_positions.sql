-- +goose Up

-- Where a diff note is in the newest version of its merge request that has its
-- line, as JSON; empty if that is position.
ALTER TABLE notes ADD COLUMN current_position TEXT NOT NULL DEFAULT '';
