-- +goose Up

-- Where issues and merge requests are mentioned: the system note on the target
-- names the source. It is shown to readers of the source. Each source is noted
-- once on a target.
CREATE TABLE cross_references (
  id                AUTO_ID,
  target_type       TEXT NOT NULL,
  target_id         BIGINT NOT NULL,
  source_type       TEXT NOT NULL, -- Issue, MergeRequest or Commit
  source_project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  source_id         BIGINT NOT NULL DEFAULT 0,
  source_sha        TEXT NOT NULL DEFAULT '', -- of a commit
  note_id           BIGINT REFERENCES notes (id) ON DELETE CASCADE,
  UNIQUE (target_type, target_id, source_type, source_project_id, source_id, source_sha)
);
CREATE INDEX cross_references_note ON cross_references (note_id);
CREATE INDEX cross_references_project ON cross_references (source_project_id);
