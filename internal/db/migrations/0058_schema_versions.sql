-- +goose Up
-- oldest: 0053

-- The migrations of all releases that have run here, with the oldest release that
-- may run beside each: the one whose newest migration is named by oldest. A release
-- that does not have a migration reads here whether it can start.
CREATE TABLE schema_versions (
  version BIGINT PRIMARY KEY,
  oldest  BIGINT NOT NULL
);
