-- +goose Up

-- What became of a project that is made from another: none, scheduled,
-- finished or failed.
ALTER TABLE projects ADD COLUMN import_status TEXT NOT NULL DEFAULT 'none';
ALTER TABLE projects ADD COLUMN import_error TEXT NOT NULL DEFAULT '';

-- Sizes that are shown with a project, measured after what changes them. A
-- project without a row has nothing.
CREATE TABLE project_statistics (
  project_id      BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  repository_size BIGINT NOT NULL DEFAULT 0, -- bytes
  commit_count    BIGINT NOT NULL DEFAULT 0, -- of the default branch
  updated_at      BIGINT NOT NULL
);

-- Pushes under way: a row is written before refs move and goes in the
-- transaction that records the push, so after a crash what is left here says
-- where to look.
CREATE TABLE pushes (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  actor      TEXT NOT NULL, -- JSON
  push       TEXT NOT NULL, -- JSON
  created_at BIGINT NOT NULL
);
CREATE INDEX pushes_created_at ON pushes (created_at);
CREATE INDEX pushes_project_id ON pushes (project_id);

-- What users did, for others to read.
CREATE TABLE activity_events (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  author_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  action       TEXT NOT NULL,
  target_type  TEXT NOT NULL DEFAULT '',
  target_id    BIGINT,
  target_iid   BIGINT,
  target_title TEXT NOT NULL DEFAULT '',
  push         TEXT NOT NULL DEFAULT '', -- JSON
  created_at   BIGINT NOT NULL
);
CREATE INDEX activity_events_project_id ON activity_events (project_id, id);
CREATE INDEX activity_events_author_id ON activity_events (author_id, id);
CREATE INDEX activity_events_created_at ON activity_events (created_at);
