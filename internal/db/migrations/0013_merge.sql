-- +goose Up

-- Requests to take what a branch has into another one, of the same project or
-- of the one that the source was forked from. project_id is that of the target.
CREATE TABLE merge_requests (
  id                  AUTO_ID,
  project_id          BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid                 BIGINT NOT NULL,
  state               TEXT NOT NULL DEFAULT 'opened', -- closed, merged
  draft               BOOLEAN NOT NULL DEFAULT FALSE,
  author_id           BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  milestone_id        BIGINT REFERENCES milestones (id) ON DELETE SET NULL,
  created_at          BIGINT NOT NULL,
  updated_at          BIGINT NOT NULL,
  source_project_id   BIGINT REFERENCES projects (id) ON DELETE SET NULL,
  source_branch       TEXT NOT NULL,
  target_branch       TEXT NOT NULL,
  title               TEXT NOT NULL,
  head_sha            TEXT NOT NULL, -- of the source, as it was last pushed
  notes               BIGINT NOT NULL DEFAULT 0, -- how many comments of users
  locked              BOOLEAN, -- the discussion; null: nobody has said
  squash              BOOLEAN NOT NULL DEFAULT FALSE,
  remove_source       BOOLEAN NOT NULL DEFAULT FALSE, -- when it is merged
  allow_collaboration BOOLEAN NOT NULL DEFAULT FALSE,
  merge_commit_sha    TEXT NOT NULL DEFAULT '',
  squash_commit_sha   TEXT NOT NULL DEFAULT '',
  merged_at           BIGINT,
  merged_by_id        BIGINT REFERENCES users (id) ON DELETE SET NULL,
  closed_at           BIGINT,
  closed_by_id        BIGINT REFERENCES users (id) ON DELETE SET NULL,
  merge_error         TEXT NOT NULL DEFAULT '',
  prepared_at         BIGINT,
  -- Whether it can be merged, and of which two commits that is known.
  merge_check         TEXT NOT NULL DEFAULT '', -- can, behind (it can, but lacks commits of the target), cannot; empty: not known
  checked_source      TEXT NOT NULL DEFAULT '',
  checked_target      TEXT NOT NULL DEFAULT '',
  -- Who wants it merged as soon as its pipeline has succeeded, and how (JSON).
  auto_merge_by_id    BIGINT REFERENCES users (id) ON DELETE SET NULL,
  auto_merge          TEXT NOT NULL DEFAULT '',
  -- Somebody merges or rebases it since then; one at a time.
  merging_at          BIGINT,
  rebasing_at         BIGINT,
  description         TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX merge_requests_project_id_iid ON merge_requests (project_id, iid);
CREATE INDEX merge_requests_open ON merge_requests (source_project_id, source_branch, project_id, target_branch) WHERE state = 'opened';
CREATE INDEX merge_requests_target ON merge_requests (project_id, target_branch) WHERE state = 'opened';
CREATE INDEX merge_requests_project_id_created_at ON merge_requests (project_id, created_at, id);
CREATE INDEX merge_requests_project_id_updated_at ON merge_requests (project_id, updated_at, id);
CREATE INDEX merge_requests_project_id_state ON merge_requests (project_id, state, created_at, id);
CREATE INDEX merge_requests_source_project_id ON merge_requests (source_project_id, source_branch);
CREATE INDEX merge_requests_created_at ON merge_requests (created_at, id);
CREATE INDEX merge_requests_author_id ON merge_requests (author_id, id);
CREATE INDEX merge_requests_milestone_id ON merge_requests (milestone_id);
CREATE INDEX merge_requests_merged_by_id ON merge_requests (merged_by_id) WHERE merged_by_id IS NOT NULL;
CREATE INDEX merge_requests_closed_by_id ON merge_requests (closed_by_id) WHERE closed_by_id IS NOT NULL;
CREATE INDEX merge_requests_auto_merge_by_id ON merge_requests (auto_merge_by_id) WHERE auto_merge_by_id IS NOT NULL;

CREATE TABLE merge_request_labels (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  label_id         BIGINT NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
  PRIMARY KEY (merge_request_id, label_id)
);
CREATE INDEX merge_request_labels_label_id ON merge_request_labels (label_id, merge_request_id);

CREATE TABLE merge_request_assignees (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  PRIMARY KEY (merge_request_id, user_id)
);
CREATE INDEX merge_request_assignees_user_id ON merge_request_assignees (user_id, merge_request_id);

CREATE TABLE merge_request_reviewers (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  state            TEXT NOT NULL DEFAULT 'unreviewed',
  created_at       BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (merge_request_id, user_id)
);
CREATE INDEX merge_request_reviewers_user_id ON merge_request_reviewers (user_id, merge_request_id);

-- What a merge request was after each push to its source. The row is written
-- with the push; what git has to say of it is found afterwards.
CREATE TABLE merge_request_versions (
  id               AUTO_ID,
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  head_sha         TEXT NOT NULL,
  base_sha         TEXT NOT NULL DEFAULT '', -- where the history of source and target went apart
  start_sha        TEXT NOT NULL DEFAULT '', -- the head of the target then
  author_id        BIGINT, -- who pushed; null for the first one
  was_sha          TEXT NOT NULL DEFAULT '', -- the head before
  files            BIGINT NOT NULL DEFAULT 0, -- that differ
  collected        BOOLEAN NOT NULL DEFAULT FALSE,
  created_at       BIGINT NOT NULL
);
CREATE INDEX merge_request_versions_merge_request_id ON merge_request_versions (merge_request_id, id);

-- The commits of the newest version, as far as they are few.
CREATE TABLE merge_request_commits (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  sha              TEXT NOT NULL,
  PRIMARY KEY (merge_request_id, sha)
);
CREATE INDEX merge_request_commits_sha ON merge_request_commits (sha);

-- The issues that the texts and commits of a merge request name; those that
-- it closes when it is merged.
CREATE TABLE merge_request_issues (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  issue_id         BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  closes           BOOLEAN NOT NULL,
  PRIMARY KEY (merge_request_id, issue_id)
);
CREATE INDEX merge_request_issues_issue_id ON merge_request_issues (issue_id, merge_request_id);
