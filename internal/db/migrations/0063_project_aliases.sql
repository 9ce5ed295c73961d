-- +goose Up
-- oldest: 0060

-- Other names of projects for Git clients.
CREATE TABLE project_aliases (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX project_aliases_name ON project_aliases (name);
CREATE INDEX project_aliases_project_id ON project_aliases (project_id);
