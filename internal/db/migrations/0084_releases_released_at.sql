-- +goose Up
-- oldest: 0060

-- Lists of the releases of a group start with the newest ones of the instance.
CREATE INDEX CONCURRENTLY releases_released_at ON releases (released_at, id);
