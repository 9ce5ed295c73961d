-- +goose Up
-- oldest: 0058

-- Answers of identity providers that were used: each opens one session at most.
CREATE TABLE sign_in_uses (
  digest     TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
) BY_KEY;
CREATE INDEX sign_in_uses_expires_at ON sign_in_uses (expires_at);

-- Memberships that come from the groups of a user at an identity provider.
CREATE TABLE provider_memberships (
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider     TEXT NOT NULL,
  namespace_id BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, provider, namespace_id)
) BY_KEY;
CREATE INDEX provider_memberships_namespace_id ON provider_memberships (namespace_id);
