-- +goose Up

-- A table BY_KEY lies in the order of its key, where the database can do that.
-- Times are microseconds since 1970 (BIGINT), days are YYYY-MM-DD (TEXT), so
-- that both databases store and order them alike.

CREATE TABLE users (
  id                      AUTO_ID,
  deleted_at              BIGINT, -- first, because every list asks for it
  kind                    TEXT NOT NULL DEFAULT 'human',
  username                TEXT NOT NULL,
  name                    TEXT NOT NULL,
  email                   TEXT NOT NULL,
  confirmed_at            BIGINT,
  state                   TEXT NOT NULL DEFAULT 'active',
  admin                   BOOLEAN NOT NULL DEFAULT FALSE,
  auditor                 BOOLEAN NOT NULL DEFAULT FALSE,
  external                BOOLEAN NOT NULL DEFAULT FALSE,
  password_hash           TEXT NOT NULL DEFAULT '',
  must_change_password    BOOLEAN NOT NULL DEFAULT FALSE,
  failed_attempts         BIGINT NOT NULL DEFAULT 0,
  locked_until            BIGINT,
  otp_secret              TEXT NOT NULL DEFAULT '',
  otp_enabled_at          BIGINT,
  otp_last_step           BIGINT NOT NULL DEFAULT 0,
  avatar                  TEXT NOT NULL DEFAULT '',
  bio                     TEXT NOT NULL DEFAULT '',
  location                TEXT NOT NULL DEFAULT '',
  public_email            TEXT NOT NULL DEFAULT '',
  commit_email            TEXT NOT NULL DEFAULT '',
  skype                   TEXT NOT NULL DEFAULT '',
  linkedin                TEXT NOT NULL DEFAULT '',
  twitter                 TEXT NOT NULL DEFAULT '',
  discord                 TEXT NOT NULL DEFAULT '',
  website_url             TEXT NOT NULL DEFAULT '',
  organization            TEXT NOT NULL DEFAULT '',
  job_title               TEXT NOT NULL DEFAULT '',
  pronouns                TEXT NOT NULL DEFAULT '',
  timezone                TEXT NOT NULL DEFAULT 'UTC',
  note                    TEXT NOT NULL DEFAULT '',
  theme_id                BIGINT NOT NULL DEFAULT 1,
  color_scheme_id         BIGINT NOT NULL DEFAULT 1,
  view_diffs_file_by_file BOOLEAN NOT NULL DEFAULT FALSE,
  show_whitespace_in_diffs BOOLEAN NOT NULL DEFAULT TRUE,
  private_profile         BOOLEAN NOT NULL DEFAULT FALSE,
  projects_limit          BIGINT NOT NULL DEFAULT 100000,
  can_create_group        BOOLEAN NOT NULL DEFAULT TRUE,
  ci_minutes_limit        BIGINT,
  extra_ci_minutes_limit  BIGINT,
  sign_in_count           BIGINT NOT NULL DEFAULT 0,
  current_sign_in_at      BIGINT,
  current_sign_in_ip      TEXT NOT NULL DEFAULT '',
  last_sign_in_at         BIGINT,
  last_sign_in_ip         TEXT NOT NULL DEFAULT '',
  last_activity_on        TEXT,
  status_emoji            TEXT NOT NULL DEFAULT '',
  status_message          TEXT NOT NULL DEFAULT '',
  status_availability     TEXT NOT NULL DEFAULT 'not_set',
  status_clear_at         BIGINT,
  followers               BIGINT NOT NULL DEFAULT 0, -- how many rows of follows there are
  following               BIGINT NOT NULL DEFAULT 0,
  namespace_id            BIGINT, -- the one whose user_id is this user
  created_by              BIGINT,
  created_at              BIGINT NOT NULL,
  updated_at              BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_username ON users (lower(username));
CREATE INDEX users_email ON users (lower(email));
-- Lists leave deleted users out. These hold all that a page by offset passes
-- over and that a total counts: SQLite asks for the deleted_at of each entry.
CREATE INDEX users_alive ON users (id, deleted_at) WHERE deleted_at IS NULL;
CREATE INDEX users_name_id ON users (name, id, deleted_at) WHERE deleted_at IS NULL;
CREATE INDEX users_username_id ON users (username, id, deleted_at) WHERE deleted_at IS NULL;
CREATE INDEX users_created_at_id ON users (created_at, id, deleted_at) WHERE deleted_at IS NULL;
CREATE INDEX users_updated_at_id ON users (updated_at, id, deleted_at) WHERE deleted_at IS NULL;
CREATE INDEX users_last_activity_on ON users (last_activity_on, id);
CREATE INDEX users_admin ON users (id) WHERE admin;
CREATE INDEX users_deleted ON users (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX users_status_clear_at ON users (status_clear_at) WHERE status_clear_at IS NOT NULL;
CREATE INDEX users_inactive ON users (state, id) WHERE state <> 'active';

CREATE TABLE namespaces (
  id         AUTO_ID,
  kind       TEXT NOT NULL,
  parent_id  BIGINT REFERENCES namespaces (id),
  user_id    BIGINT REFERENCES users (id) ON DELETE CASCADE,
  path       TEXT NOT NULL,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX namespaces_path ON namespaces (COALESCE(parent_id, 0), lower(path));
CREATE UNIQUE INDEX namespaces_user_id ON namespaces (user_id);

-- Every address of every user, the primary one among them.
CREATE TABLE emails (
  id                  AUTO_ID,
  user_id             BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  email               TEXT NOT NULL,
  confirmed_at        BIGINT,
  confirmation_digest TEXT NOT NULL DEFAULT '',
  created_at          BIGINT NOT NULL
);
CREATE UNIQUE INDEX emails_email ON emails (lower(email));
CREATE INDEX emails_user_id ON emails (user_id, id);
CREATE INDEX emails_confirmation_digest ON emails (confirmation_digest) WHERE confirmation_digest <> '';

CREATE TABLE identities (
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider         TEXT NOT NULL,
  extern_uid       TEXT NOT NULL,
  saml_provider_id BIGINT,
  PRIMARY KEY (user_id, provider)
) BY_KEY;
CREATE UNIQUE INDEX identities_provider_extern_uid ON identities (provider, lower(extern_uid));

CREATE TABLE follows (
  follower_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  followed_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (follower_id, followed_id)
) BY_KEY;
CREATE INDEX follows_followed_id ON follows (followed_id, follower_id);

CREATE TABLE ssh_keys (
  id           AUTO_ID,
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  title        TEXT NOT NULL,
  key          TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  sha256       TEXT NOT NULL,
  usage_type   TEXT NOT NULL DEFAULT 'auth_and_signing',
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT,
  last_used_at BIGINT
);
CREATE UNIQUE INDEX ssh_keys_sha256 ON ssh_keys (sha256);
CREATE INDEX ssh_keys_user_id ON ssh_keys (user_id, id);
CREATE INDEX ssh_keys_fingerprint ON ssh_keys (fingerprint);

CREATE TABLE user_custom_attributes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (user_id, key)
) BY_KEY;
CREATE INDEX user_custom_attributes_key ON user_custom_attributes (key, value, user_id);

CREATE TABLE access_tokens (
  id           AUTO_ID,
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind         TEXT NOT NULL DEFAULT 'personal',
  name         TEXT NOT NULL,
  description  TEXT NOT NULL DEFAULT '',
  scopes       TEXT NOT NULL,
  digest       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  expires_at   TEXT,
  revoked_at   BIGINT,
  last_used_at BIGINT,
  rotated_from BIGINT
);
CREATE UNIQUE INDEX access_tokens_digest ON access_tokens (digest);
CREATE INDEX access_tokens_user_id ON access_tokens (user_id, kind, id);
CREATE INDEX access_tokens_kind ON access_tokens (kind, id);
CREATE INDEX access_tokens_rotated_from ON access_tokens (rotated_from);

CREATE TABLE sessions (
  id           AUTO_ID,
  digest       TEXT NOT NULL,
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  csrf_token   TEXT NOT NULL,
  acting_as    BIGINT REFERENCES users (id) ON DELETE SET NULL, -- whom an administrator impersonates
  ip           TEXT NOT NULL,
  user_agent   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX sessions_digest ON sessions (digest);
CREATE INDEX sessions_user_id ON sessions (user_id, id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);
CREATE INDEX sessions_acting_as ON sessions (acting_as) WHERE acting_as IS NOT NULL;

CREATE TABLE recovery_codes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  digest  TEXT NOT NULL,
  PRIMARY KEY (user_id, digest)
);

CREATE TABLE settings (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE instance_variables (
  id            AUTO_ID,
  key           TEXT NOT NULL,
  description   TEXT,
  variable_type TEXT NOT NULL DEFAULT 'env_var',
  value         TEXT NOT NULL,
  protected     BOOLEAN NOT NULL DEFAULT FALSE,
  masked        BOOLEAN NOT NULL DEFAULT FALSE,
  raw           BOOLEAN NOT NULL DEFAULT FALSE,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX instance_variables_key ON instance_variables (key);

-- Audit events outlive what they tell of, so they refer to nothing.
CREATE TABLE audit_events (
  id             AUTO_ID,
  event_type     TEXT NOT NULL,
  author_id      BIGINT NOT NULL,
  author_name    TEXT NOT NULL,
  author_email   TEXT NOT NULL,
  author_class   TEXT NOT NULL,
  entity_type    TEXT NOT NULL,
  entity_id      BIGINT NOT NULL,
  entity_path    TEXT NOT NULL,
  target_type    TEXT NOT NULL,
  target_id      BIGINT,
  target_details TEXT NOT NULL,
  ip_address     TEXT NOT NULL,
  details        TEXT NOT NULL,
  created_at     BIGINT NOT NULL
);
-- What a page by offset passes over: on SQLite an id is the row itself, and
-- rows are wide. On PostgreSQL the primary key is such an index.
SQLITE_INDEX audit_events_id ON audit_events (id);
CREATE INDEX audit_events_entity ON audit_events (entity_type, entity_id, id);
CREATE INDEX audit_events_author_id ON audit_events (author_id, id);
CREATE INDEX audit_events_created_at ON audit_events (created_at, id);
