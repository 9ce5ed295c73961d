-- +goose Up
-- oldest: 0060

-- Exports of projects, as group_exports has them for groups. The file of one lies in
-- the object storage until it expires, or until its project is gone.
CREATE TABLE project_exports (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE SET NULL,
  user_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  state        TEXT NOT NULL, -- queued, started, finished or failed
  tries        BIGINT NOT NULL DEFAULT 0,
  done         BIGINT NOT NULL DEFAULT 0, -- rows, of
  total        BIGINT NOT NULL DEFAULT 0,
  size         BIGINT NOT NULL DEFAULT 0, -- bytes
  error        TEXT NOT NULL DEFAULT '',
  addresses    BOOLEAN NOT NULL DEFAULT FALSE, -- it has digests of addresses
  description  TEXT, -- instead of that of the project
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT,
  expires_at   BIGINT -- when the file goes, or what is left of one that failed
);
CREATE INDEX project_exports_project_id ON project_exports (project_id, id);
CREATE INDEX project_exports_user_id ON project_exports (user_id);
CREATE INDEX project_exports_expires_at ON project_exports (expires_at) WHERE expires_at IS NOT NULL;

-- Imports of projects from files. The project is hidden until the import is finished,
-- and deleted if it fails; its ID stays here, for those who ask.
CREATE TABLE project_file_imports (
  id           AUTO_ID,
  user_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  name         TEXT NOT NULL,
  path         TEXT NOT NULL,
  parent_id    BIGINT NOT NULL, -- the namespace, which may have gone since
  project_id   BIGINT, -- null while the file is on the way
  state        TEXT NOT NULL, -- uploading, queued, started, finished or failed
  tries        BIGINT NOT NULL DEFAULT 0,
  done         BIGINT NOT NULL DEFAULT 0, -- bytes, of
  total        BIGINT NOT NULL DEFAULT 0,
  file         TEXT NOT NULL, -- the key of what was sent; empty once that is gone
  overrides    TEXT NOT NULL DEFAULT '{}', -- JSON: settings instead of those in the file
  error        TEXT NOT NULL DEFAULT '',
  report       TEXT NOT NULL DEFAULT '{}', -- JSON
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT
);
CREATE INDEX project_file_imports_user_id ON project_file_imports (user_id, id);
CREATE INDEX project_file_imports_project_id ON project_file_imports (project_id);
CREATE INDEX project_file_imports_file ON project_file_imports (id) WHERE file <> '';
CREATE INDEX project_file_imports_finished_at ON project_file_imports (finished_at) WHERE finished_at IS NOT NULL;
