-- +goose Up

-- Branches and tags that not everybody may change, by name or by a pattern
-- with *. Which of the flags mean something depends on the kind.
CREATE TABLE protected_refs (
  id                  AUTO_ID,
  project_id          BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  kind                TEXT NOT NULL, -- branch or tag
  name                TEXT NOT NULL,
  allow_force_push    BOOLEAN NOT NULL DEFAULT FALSE,
  code_owner_approval BOOLEAN NOT NULL DEFAULT FALSE,
  created_at          BIGINT NOT NULL
);
CREATE UNIQUE INDEX protected_refs_project_id_kind_name ON protected_refs (project_id, kind, name);

-- Who may do what to a protected ref: everybody of a level, or one user,
-- group or deploy key.
CREATE TABLE protected_ref_access (
  id               AUTO_ID,
  protected_ref_id BIGINT NOT NULL REFERENCES protected_refs (id) ON DELETE CASCADE,
  action           TEXT NOT NULL, -- push, merge, unprotect or create
  access_level     BIGINT NOT NULL,
  user_id          BIGINT REFERENCES users (id) ON DELETE CASCADE,
  group_id         BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  deploy_key_id    BIGINT REFERENCES deploy_keys (id) ON DELETE CASCADE
);
CREATE INDEX protected_ref_access_protected_ref_id ON protected_ref_access (protected_ref_id, id);
CREATE INDEX protected_ref_access_user_id ON protected_ref_access (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_ref_access_group_id ON protected_ref_access (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX protected_ref_access_deploy_key_id ON protected_ref_access (deploy_key_id) WHERE deploy_key_id IS NOT NULL;

-- What commits that are pushed to a project must be like.
CREATE TABLE push_rules (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  rules      TEXT NOT NULL, -- JSON
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX push_rules_project_id ON push_rules (project_id);

-- What was said about a commit, or about a line of its diff.
CREATE TABLE commit_comments (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  sha        TEXT NOT NULL,
  author_id  BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  note       TEXT NOT NULL,
  path       TEXT NOT NULL DEFAULT '',
  line       BIGINT NOT NULL DEFAULT 0,
  line_type  TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL
);
CREATE INDEX commit_comments_project_id ON commit_comments (project_id, sha, id);
CREATE INDEX commit_comments_author_id ON commit_comments (author_id);
