-- +goose Up

-- Exports with digests of addresses are for administrators. Those that were made
-- before have them.
ALTER TABLE group_exports ADD COLUMN addresses BOOLEAN NOT NULL DEFAULT TRUE;

-- Failed sign-ins from one address with one login are one event with a count.
ALTER TABLE audit_events ADD COLUMN attempts BIGINT NOT NULL DEFAULT 1;
CREATE INDEX audit_events_failed_login_address ON audit_events (ip_address, created_at) WHERE event_type = 'failed_login';
CREATE INDEX audit_events_failed_login ON audit_events (created_at) WHERE event_type = 'failed_login';
