-- +goose Up

-- Applications that are a part of the server: the token endpoint refuses them.
-- IDs of all other applications are random, without a dash.
ALTER TABLE oauth_applications ADD COLUMN builtin BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE oauth_applications SET builtin = TRUE WHERE uid LIKE '%-pages' AND trusted AND owner_id IS NULL;
