-- +goose Up
-- oldest: 0060

-- The caches of repositories in object stores that a node has.
ALTER TABLE nodes ADD COLUMN caches TEXT NOT NULL DEFAULT '[]'; -- JSON
