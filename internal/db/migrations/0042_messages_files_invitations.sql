-- +goose Up

-- Messages of administrators that are shown on pages.
CREATE TABLE broadcast_messages (
  id                   AUTO_ID,
  message              TEXT NOT NULL,
  starts_at            BIGINT NOT NULL,
  ends_at              BIGINT NOT NULL,
  type                 TEXT NOT NULL, -- banner or notification
  theme                TEXT NOT NULL,
  color                TEXT NOT NULL DEFAULT '', -- stored and returned only
  font                 TEXT NOT NULL DEFAULT '', -- stored and returned only
  target_path          TEXT NOT NULL DEFAULT '', -- pattern of paths; empty: all pages
  target_access_levels TEXT NOT NULL DEFAULT '', -- separated by commas; empty: everyone
  dismissable          BOOLEAN NOT NULL,
  created_at           BIGINT NOT NULL
);
CREATE INDEX broadcast_messages_ends_at ON broadcast_messages (ends_at, id);

-- Files for CI/CD jobs, such as keystores and provisioning profiles. They are in
-- the object store, encrypted.
CREATE TABLE secure_files (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  size       BIGINT NOT NULL, -- in bytes, not encrypted
  sha256     TEXT NOT NULL,   -- of the content, not encrypted
  blob       TEXT NOT NULL,   -- key in the object store
  sealed_key TEXT NOT NULL,   -- of the file
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX secure_files_project_id_name ON secure_files (project_id, name);
CREATE UNIQUE INDEX secure_files_blob ON secure_files (blob);

-- What administrators note about projects and groups under keys of their choice.
CREATE TABLE project_custom_attributes (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  key        TEXT NOT NULL,
  value      TEXT NOT NULL,
  PRIMARY KEY (project_id, key)
) BY_KEY;
CREATE INDEX project_custom_attributes_key ON project_custom_attributes (key, value, project_id);

CREATE TABLE group_custom_attributes (
  namespace_id BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  key          TEXT NOT NULL,
  value        TEXT NOT NULL,
  PRIMARY KEY (namespace_id, key)
) BY_KEY;
CREATE INDEX group_custom_attributes_key ON group_custom_attributes (key, value, namespace_id);

-- Invitations of email addresses to projects and groups: one of project_id and
-- namespace_id is set.
CREATE TABLE invitations (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  email        TEXT NOT NULL, -- in lower case
  access_level BIGINT NOT NULL,
  expires_at   TEXT NOT NULL DEFAULT '', -- of the membership
  digest       TEXT NOT NULL, -- of the token in the email
  created_by   BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX invitations_project_id_email ON invitations (project_id, email) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX invitations_namespace_id_email ON invitations (namespace_id, email) WHERE namespace_id IS NOT NULL;
CREATE UNIQUE INDEX invitations_digest ON invitations (digest);
CREATE INDEX invitations_email ON invitations (email);
CREATE INDEX invitations_created_by ON invitations (created_by);
