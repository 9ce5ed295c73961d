-- +goose Up

-- Service accounts: users that are programs of the instance, or of a top-level
-- group.
CREATE TABLE service_accounts (
  user_id      BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE -- the group; NULL: of the instance
);
CREATE INDEX service_accounts_namespace_id ON service_accounts (namespace_id, user_id);
