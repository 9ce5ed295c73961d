-- +goose Up

-- full_path and full_name hold the whole way from the top, so that a thing is
-- found by its path in one step. They change with every ancestor.
ALTER TABLE namespaces ADD COLUMN full_path TEXT NOT NULL DEFAULT '';
ALTER TABLE namespaces ADD COLUMN full_name TEXT NOT NULL DEFAULT '';
ALTER TABLE namespaces ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE namespaces ADD COLUMN visibility TEXT NOT NULL DEFAULT 'public';
ALTER TABLE namespaces ADD COLUMN avatar TEXT NOT NULL DEFAULT '';
-- The settings are read with the row and never searched: JSON.
ALTER TABLE namespaces ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE namespaces ADD COLUMN created_by BIGINT;
ALTER TABLE namespaces ADD COLUMN deleted_at BIGINT;
UPDATE namespaces SET full_path = path, full_name = name;
CREATE UNIQUE INDEX namespaces_full_path ON namespaces (lower(full_path));
CREATE INDEX namespaces_name_id ON namespaces (name, id) WHERE kind = 'group';
CREATE INDEX namespaces_path_id ON namespaces (path, id) WHERE kind = 'group';
CREATE INDEX namespaces_parent_id ON namespaces (parent_id, id);

-- Every pair of a namespace and one above it; each stands above itself at
-- depth 0.
CREATE TABLE namespace_tree (
  ancestor_id   BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  descendant_id BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  depth         BIGINT NOT NULL,
  PRIMARY KEY (descendant_id, ancestor_id)
);
CREATE INDEX namespace_tree_ancestor_id ON namespace_tree (ancestor_id, descendant_id);
INSERT INTO namespace_tree (ancestor_id, descendant_id, depth) SELECT id, id, 0 FROM namespaces;

CREATE TABLE projects (
  id                          AUTO_ID,
  namespace_id                BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  path                        TEXT NOT NULL,
  name                        TEXT NOT NULL,
  full_path                   TEXT NOT NULL,
  description                 TEXT NOT NULL DEFAULT '',
  visibility                  TEXT NOT NULL DEFAULT 'private',
  default_branch              TEXT NOT NULL DEFAULT '',
  archived                    BOOLEAN NOT NULL DEFAULT FALSE,
  avatar                      TEXT NOT NULL DEFAULT '',
  creator_id                  BIGINT,
  forked_from_id              BIGINT REFERENCES projects (id) ON DELETE SET NULL,
  star_count                  BIGINT NOT NULL DEFAULT 0,
  storage                     TEXT NOT NULL DEFAULT 'default',
  read_only                   BOOLEAN NOT NULL DEFAULT FALSE,
  issues_access_level         TEXT NOT NULL DEFAULT 'enabled',
  repository_access_level     TEXT NOT NULL DEFAULT 'enabled',
  merge_requests_access_level TEXT NOT NULL DEFAULT 'enabled',
  builds_access_level         TEXT NOT NULL DEFAULT 'enabled',
  settings                    TEXT NOT NULL DEFAULT '{}',
  last_activity_at            BIGINT NOT NULL,
  created_at                  BIGINT NOT NULL,
  updated_at                  BIGINT NOT NULL,
  deleted_at                  BIGINT
);
CREATE UNIQUE INDEX projects_path ON projects (namespace_id, lower(path));
CREATE UNIQUE INDEX projects_full_path ON projects (lower(full_path));
CREATE INDEX projects_namespace_id ON projects (namespace_id, id);
CREATE INDEX projects_public ON projects (id) WHERE visibility = 'public' AND deleted_at IS NULL;
CREATE INDEX projects_name_id ON projects (name, id);
CREATE INDEX projects_path_id ON projects (path, id);
CREATE INDEX projects_created_at_id ON projects (created_at, id);
CREATE INDEX projects_updated_at_id ON projects (updated_at, id);
CREATE INDEX projects_last_activity_at_id ON projects (last_activity_at, id);
CREATE INDEX projects_star_count_id ON projects (star_count, id);
CREATE INDEX projects_storage_id ON projects (storage, id);
CREATE INDEX projects_forked_from_id ON projects (forked_from_id, id) WHERE forked_from_id IS NOT NULL;
CREATE INDEX projects_creator_id ON projects (creator_id);

CREATE TABLE project_topics (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  position   BIGINT NOT NULL,
  name       TEXT NOT NULL,
  PRIMARY KEY (project_id, position)
);
CREATE INDEX project_topics_name ON project_topics (lower(name), project_id);

-- Members of a group or of a project: one of the two is set. A row with
-- requested_at is somebody who asked to be let in; it grants nothing.
CREATE TABLE members (
  id           AUTO_ID,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  access_level BIGINT NOT NULL,
  expires_at   TEXT,
  created_by   BIGINT,
  created_at   BIGINT NOT NULL,
  requested_at BIGINT
);
CREATE UNIQUE INDEX members_namespace_id_user_id ON members (namespace_id, user_id);
CREATE UNIQUE INDEX members_project_id_user_id ON members (project_id, user_id);
CREATE INDEX members_user_id ON members (user_id, id);
CREATE INDEX members_expires_at ON members (expires_at) WHERE expires_at IS NOT NULL;

-- A group or project that is shared with another group.
CREATE TABLE group_shares (
  id           AUTO_ID,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  group_id     BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  access_level BIGINT NOT NULL,
  expires_at   TEXT,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX group_shares_namespace_id_group_id ON group_shares (namespace_id, group_id);
CREATE UNIQUE INDEX group_shares_project_id_group_id ON group_shares (project_id, group_id);
CREATE INDEX group_shares_group_id ON group_shares (group_id, id);
CREATE INDEX group_shares_expires_at ON group_shares (expires_at) WHERE expires_at IS NOT NULL;

-- Where things were before they moved: one of namespace_id and project_id is
-- set.
CREATE TABLE path_redirects (
  id           AUTO_ID,
  path         TEXT NOT NULL,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX path_redirects_path ON path_redirects (lower(path));
CREATE INDEX path_redirects_namespace_id ON path_redirects (namespace_id);
CREATE INDEX path_redirects_project_id ON path_redirects (project_id);

CREATE TABLE stars (
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (project_id, user_id)
);
CREATE INDEX stars_user_id ON stars (user_id, project_id);
