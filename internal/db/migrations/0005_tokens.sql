-- +goose Up

-- Accounts that a group or project lets programs use. What such an account is
-- a member of stands in members; access_level is what it was when it was made,
-- for the time after that.
CREATE TABLE bots (
  user_id      BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  access_level BIGINT NOT NULL,
  retired_at   BIGINT -- none of its tokens works any more
);
CREATE INDEX bots_project_id ON bots (project_id, user_id);
CREATE INDEX bots_namespace_id ON bots (namespace_id, user_id);
CREATE INDEX bots_working ON bots (user_id) WHERE retired_at IS NULL;
CREATE INDEX bots_retired_at ON bots (retired_at) WHERE retired_at IS NOT NULL;

-- Passwords for git over HTTP that belong to a project, or to a group and all
-- projects in it: one of project_id and namespace_id is set.
CREATE TABLE deploy_tokens (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  username     TEXT NOT NULL,
  scopes       TEXT NOT NULL,
  digest       TEXT NOT NULL,
  created_by   BIGINT,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT
);
CREATE UNIQUE INDEX deploy_tokens_digest ON deploy_tokens (digest);
CREATE INDEX deploy_tokens_project_id ON deploy_tokens (project_id, id);
CREATE INDEX deploy_tokens_namespace_id ON deploy_tokens (namespace_id, id);

-- SSH keys that open the projects in which they are enabled. Public ones may
-- be enabled by everybody in his projects.
CREATE TABLE deploy_keys (
  id           AUTO_ID,
  title        TEXT NOT NULL,
  key          TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  sha256       TEXT NOT NULL,
  public       BOOLEAN NOT NULL DEFAULT FALSE,
  created_by   BIGINT,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT,
  last_used_at BIGINT
);
CREATE UNIQUE INDEX deploy_keys_sha256 ON deploy_keys (sha256);

CREATE TABLE deploy_key_projects (
  deploy_key_id BIGINT NOT NULL REFERENCES deploy_keys (id) ON DELETE CASCADE,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  can_push      BOOLEAN NOT NULL DEFAULT FALSE,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (project_id, deploy_key_id)
);
CREATE INDEX deploy_key_projects_deploy_key_id ON deploy_key_projects (deploy_key_id, project_id);
