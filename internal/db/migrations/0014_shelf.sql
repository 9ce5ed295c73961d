-- +goose Up

-- For whom snippets are stands in the settings of a project, and here for the
-- lists that ask in SQL.
ALTER TABLE projects ADD COLUMN snippets_access_level TEXT NOT NULL DEFAULT 'enabled';
ALTER TABLE project_statistics ADD COLUMN wiki_size BIGINT NOT NULL DEFAULT 0;
ALTER TABLE project_statistics ADD COLUMN snippets_size BIGINT NOT NULL DEFAULT 0;

-- Snippets, of a project or of a user alone. Their files are in git.
CREATE TABLE snippets (
  id          AUTO_ID,
  project_id  BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  author_id   BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  visibility  TEXT NOT NULL,
  title       TEXT NOT NULL,
  files       TEXT NOT NULL DEFAULT '[]', -- JSON: the paths of the files
  user_agent  TEXT NOT NULL DEFAULT '',   -- what it was made with, and from where
  ip_address  TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  description TEXT NOT NULL DEFAULT ''
);
CREATE INDEX snippets_author_id ON snippets (author_id, id);
CREATE INDEX snippets_project_id ON snippets (project_id, id);
CREATE INDEX snippets_visibility ON snippets (visibility, id) WHERE project_id IS NULL;

-- Repositories beside those of the projects' code: of snippets, of the wikis of
-- projects and groups. One whose owner is gone goes in the background.
CREATE TABLE annexes (
  id           AUTO_ID,
  kind         TEXT NOT NULL, -- snippet or wiki; also where it lies in its storage
  snippet_id   BIGINT REFERENCES snippets (id) ON DELETE SET NULL,
  project_id   BIGINT REFERENCES projects (id) ON DELETE SET NULL,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE SET NULL,
  storage      TEXT NOT NULL,
  size         BIGINT NOT NULL DEFAULT 0, -- bytes, as last measured
  pushes       BIGINT NOT NULL DEFAULT 0, -- how many were recorded
  changed_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX annexes_snippet_id ON annexes (snippet_id);
CREATE UNIQUE INDEX annexes_project_id ON annexes (project_id);
CREATE UNIQUE INDEX annexes_namespace_id ON annexes (namespace_id);
CREATE INDEX annexes_orphans ON annexes (id) WHERE snippet_id IS NULL AND project_id IS NULL AND namespace_id IS NULL;
CREATE INDEX annexes_changed_at ON annexes (changed_at);

-- Pushes to them that are under way, as the table pushes has them for projects.
CREATE TABLE annex_pushes (
  id         AUTO_ID,
  annex_id   BIGINT NOT NULL REFERENCES annexes (id) ON DELETE CASCADE,
  actor      TEXT NOT NULL, -- JSON
  push       TEXT NOT NULL, -- JSON
  created_at BIGINT NOT NULL
);
CREATE INDEX annex_pushes_annex_id ON annex_pushes (annex_id);
CREATE INDEX annex_pushes_created_at ON annex_pushes (created_at);

-- The pages of wikis that something was recorded of; what is in them is in git.
CREATE TABLE wiki_pages (
  id       AUTO_ID,
  annex_id BIGINT NOT NULL REFERENCES annexes (id) ON DELETE CASCADE,
  slug     TEXT NOT NULL,
  title    TEXT NOT NULL,
  format   TEXT NOT NULL
);
CREATE UNIQUE INDEX wiki_pages_annex_id_slug ON wiki_pages (annex_id, slug);
