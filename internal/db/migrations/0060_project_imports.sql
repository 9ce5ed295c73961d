-- +goose Up
-- oldest: 0058

ALTER TABLE projects ADD COLUMN import_type TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN import_url TEXT NOT NULL DEFAULT '';

-- Imports of repositories by URL, the latest of each project. The state is in
-- projects.import_status. Credentials are encrypted with the instance key, and
-- removed when the import ends.
CREATE TABLE project_imports (
  id             AUTO_ID,
  project_id     BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id        BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  run            TEXT NOT NULL,
  active         BOOLEAN NOT NULL,
  credentials    TEXT NOT NULL DEFAULT '',
  phase          TEXT NOT NULL DEFAULT '',
  percent        BIGINT NOT NULL DEFAULT 0,
  bytes          BIGINT NOT NULL DEFAULT 0,
  branches       BIGINT NOT NULL DEFAULT 0,
  tags           BIGINT NOT NULL DEFAULT 0,
  lfs_found      BIGINT NOT NULL DEFAULT 0,
  lfs_fetched    BIGINT NOT NULL DEFAULT 0,
  attempts       BIGINT NOT NULL DEFAULT 0,
  created_at     BIGINT NOT NULL
);
CREATE UNIQUE INDEX project_imports_project_id ON project_imports (project_id);
CREATE INDEX project_imports_user ON project_imports (user_id, active);
