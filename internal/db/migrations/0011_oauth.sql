-- +goose Up

-- Programs of others that may ask users to act for them. One without an owner
-- belongs to the installation.
CREATE TABLE oauth_applications (
  id            AUTO_ID,
  uid           TEXT NOT NULL,
  secret_digest TEXT NOT NULL,
  name          TEXT NOT NULL,
  redirect_uris TEXT NOT NULL, -- one per line
  scopes        TEXT NOT NULL,
  confidential  BOOLEAN NOT NULL,
  trusted       BOOLEAN NOT NULL,
  disabled      BOOLEAN NOT NULL DEFAULT FALSE,
  owner_id      BIGINT REFERENCES users (id) ON DELETE CASCADE,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX oauth_applications_uid ON oauth_applications (uid);
CREATE INDEX oauth_applications_owner_id ON oauth_applications (owner_id, id);

-- What a user once allowed. All tokens that came out of it, by the code and by
-- each refresh, are its family, and end with it. One that was made with the
-- password of the user may have no application.
CREATE TABLE oauth_grants (
  id              AUTO_ID,
  application_id  BIGINT REFERENCES oauth_applications (id) ON DELETE CASCADE,
  user_id         BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  scopes          TEXT NOT NULL,
  redirect_uri    TEXT NOT NULL, -- empty for one that was made with a password
  pkce            BOOLEAN NOT NULL,
  nonce           TEXT NOT NULL,
  authenticated_at BIGINT NOT NULL, -- when the user signed in
  created_at      BIGINT NOT NULL,
  used_at         BIGINT NOT NULL, -- when it last gave a token
  revoked_at      BIGINT
);
CREATE INDEX oauth_grants_user_id ON oauth_grants (user_id, application_id, id);
CREATE INDEX oauth_grants_application_id ON oauth_grants (application_id, id);
CREATE INDEX oauth_grants_used_at ON oauth_grants (used_at);
CREATE INDEX oauth_grants_password ON oauth_grants (used_at) WHERE redirect_uri = '';
CREATE INDEX oauth_grants_revoked_at ON oauth_grants (revoked_at) WHERE revoked_at IS NOT NULL;

-- Authorization codes. One that was used is kept for a while, to tell when it
-- is used again.
CREATE TABLE oauth_codes (
  id         AUTO_ID,
  digest     TEXT NOT NULL,
  grant_id   BIGINT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  challenge  TEXT NOT NULL, -- of PKCE, S256; empty without
  expires_at BIGINT NOT NULL,
  used_at    BIGINT
);
CREATE UNIQUE INDEX oauth_codes_digest ON oauth_codes (digest);
CREATE INDEX oauth_codes_grant_id ON oauth_codes (grant_id);
CREATE INDEX oauth_codes_expires_at ON oauth_codes (expires_at);

-- Access tokens, each with the refresh token that was given beside it.
CREATE TABLE oauth_tokens (
  id             AUTO_ID,
  grant_id       BIGINT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  digest         TEXT NOT NULL,
  refresh_digest TEXT NOT NULL DEFAULT '', -- empty without one
  scopes         TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  expires_at     BIGINT NOT NULL,
  revoked_at     BIGINT
);
CREATE UNIQUE INDEX oauth_tokens_digest ON oauth_tokens (digest);
CREATE UNIQUE INDEX oauth_tokens_refresh_digest ON oauth_tokens (refresh_digest) WHERE refresh_digest <> '';
CREATE INDEX oauth_tokens_grant_id ON oauth_tokens (grant_id, id);
CREATE INDEX oauth_tokens_revoked_at ON oauth_tokens (revoked_at) WHERE revoked_at IS NOT NULL;
