-- +goose Up
-- oldest: 0060

-- The pushes of the last days that were recorded, each by the transaction that
-- removed its row from pushes or annex_pushes, or that updated the refs. A backup
-- reads from them what happened to a repository after the snapshot of the database.
CREATE TABLE recorded_pushes (
  id         AUTO_ID,
  project_id BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  annex_id   BIGINT REFERENCES annexes (id) ON DELETE CASCADE,
  push_id    BIGINT NOT NULL, -- the ID of the removed row, or 0
  changes    TEXT NOT NULL, -- JSON
  created_at BIGINT NOT NULL
);
CREATE INDEX recorded_pushes_project_id ON recorded_pushes (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX recorded_pushes_annex_id ON recorded_pushes (annex_id) WHERE annex_id IS NOT NULL;
CREATE INDEX recorded_pushes_created_at ON recorded_pushes (created_at);
