-- +goose Up
-- oldest: 0060

-- When a domain is removed unless it is verified before; NULL for verified domains, and
-- while domains need no verification.
ALTER TABLE pages_domains ADD COLUMN remove_at BIGINT;
