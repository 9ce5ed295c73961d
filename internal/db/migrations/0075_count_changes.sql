-- +goose Up
-- oldest: 0060

-- SQLite keeps counts by the version of its file.
SELECT 1;
