-- +goose Up

-- The node that makes a push, by its name among the nodes of the queue: when it is
-- gone, another node records the push.
ALTER TABLE pushes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE annex_pushes ADD COLUMN node TEXT NOT NULL DEFAULT '';
