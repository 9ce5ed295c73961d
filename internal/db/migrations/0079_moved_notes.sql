-- +goose Up
-- oldest: 0060

-- The version up to which the positions of diff notes were moved; null: unknown, for
-- merge requests that are older than this column.
ALTER TABLE merge_requests ADD COLUMN notes_version_id BIGINT;
