-- +goose Up
-- oldest: 0060

-- What a group and the groups above it require of merge requests, as JSON; empty
-- if they require nothing.
ALTER TABLE namespaces ADD COLUMN merge_rules TEXT NOT NULL DEFAULT '';
