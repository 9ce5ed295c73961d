-- +goose Up

-- To-do items also for commits, alerts and access requests. An access request
-- belongs to a project or to a group, so project_id may be NULL: the table is
-- copied, because SQLite cannot change a column.
CREATE TABLE todos_copy (
  id                AUTO_ID,
  user_id           BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  author_id         BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  project_id        BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id      BIGINT REFERENCES namespaces (id) ON DELETE CASCADE, -- the group of an access request
  target_type       TEXT NOT NULL, -- Issue, MergeRequest, Commit, AlertManagement::Alert, Project or Namespace
  issue_id          BIGINT REFERENCES issues (id) ON DELETE CASCADE,
  merge_request_id  BIGINT REFERENCES merge_requests (id) ON DELETE CASCADE,
  alert_id          BIGINT REFERENCES alerts (id) ON DELETE CASCADE,
  commit_sha        TEXT, -- with commit_title and commit_comment_id
  commit_title      TEXT NOT NULL DEFAULT '',
  commit_comment_id BIGINT REFERENCES commit_comments (id) ON DELETE CASCADE,
  note_id           BIGINT REFERENCES notes (id) ON DELETE CASCADE, -- the comment that mentions the user
  action            TEXT NOT NULL, -- assigned, mentioned …
  state             TEXT NOT NULL DEFAULT 'pending', -- or done
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);
INSERT INTO todos_copy (id, user_id, author_id, project_id, target_type, issue_id, merge_request_id, note_id, action, state, created_at, updated_at)
SELECT id, user_id, author_id, project_id, CASE WHEN issue_id IS NULL THEN 'MergeRequest' ELSE 'Issue' END,
  issue_id, merge_request_id, note_id, action, state, created_at, updated_at
FROM todos ORDER BY id;
DROP TABLE todos;
ALTER TABLE todos_copy RENAME TO todos;

CREATE INDEX todos_user_id ON todos (user_id, state, id);
CREATE INDEX todos_user_id_project_id ON todos (user_id, state, project_id, id);
CREATE INDEX todos_user_id_action ON todos (user_id, state, action, id);
CREATE INDEX todos_user_id_author_id ON todos (user_id, state, author_id, id);
CREATE INDEX todos_user_id_target_type ON todos (user_id, state, target_type, id);
-- A user has at most one pending item for a target, and for each access request.
CREATE UNIQUE INDEX todos_issue_id_user_id ON todos (issue_id, user_id) WHERE state = 'pending' AND issue_id IS NOT NULL;
CREATE UNIQUE INDEX todos_merge_request_id_user_id ON todos (merge_request_id, user_id) WHERE state = 'pending' AND merge_request_id IS NOT NULL;
CREATE UNIQUE INDEX todos_alert_id_user_id ON todos (alert_id, user_id) WHERE state = 'pending' AND alert_id IS NOT NULL;
CREATE UNIQUE INDEX todos_commit_sha_project_id_user_id ON todos (commit_sha, project_id, user_id) WHERE state = 'pending' AND commit_sha IS NOT NULL;
CREATE UNIQUE INDEX todos_project_id_author_id_user_id ON todos (project_id, author_id, user_id) WHERE state = 'pending' AND target_type = 'Project';
CREATE UNIQUE INDEX todos_namespace_id_author_id_user_id ON todos (namespace_id, author_id, user_id) WHERE state = 'pending' AND target_type = 'Namespace';
CREATE INDEX todos_issue_id ON todos (issue_id) WHERE issue_id IS NOT NULL;
CREATE INDEX todos_merge_request_id ON todos (merge_request_id) WHERE merge_request_id IS NOT NULL;
CREATE INDEX todos_alert_id ON todos (alert_id) WHERE alert_id IS NOT NULL;
CREATE INDEX todos_commit_comment_id ON todos (commit_comment_id) WHERE commit_comment_id IS NOT NULL;
CREATE INDEX todos_namespace_id ON todos (namespace_id) WHERE namespace_id IS NOT NULL;
CREATE INDEX todos_note_id ON todos (note_id) WHERE note_id IS NOT NULL;
CREATE INDEX todos_author_id ON todos (author_id);
CREATE INDEX todos_project_id ON todos (project_id);
