-- +goose Up

-- Who may know of an event (a bit of activity.Audience), and the thing that it
-- is about in the end: for a comment on an issue, that issue. Events so far are
-- pushes, which concern those who read the code.
ALTER TABLE activity_events ADD COLUMN audience BIGINT NOT NULL DEFAULT 2;
ALTER TABLE activity_events ADD COLUMN subject_type TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_events ADD COLUMN subject_id BIGINT;

-- A page of events is read from the indexes of the projects that it shows; a
-- range of days is a range of them.
DROP INDEX activity_events_project_id;
DROP INDEX activity_events_author_id;
CREATE INDEX activity_events_project_id ON activity_events (project_id, created_at, id, audience);
CREATE INDEX activity_events_author_id ON activity_events (author_id, project_id, created_at, id, audience);
CREATE INDEX activity_events_subject ON activity_events (subject_type, subject_id) WHERE subject_id IS NOT NULL;

-- Numbers within a group, as project_counters has them for projects.
CREATE TABLE group_counters (
  namespace_id BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  kind         TEXT NOT NULL,
  value        BIGINT NOT NULL,
  PRIMARY KEY (namespace_id, kind)
);

-- Labels and milestones belong to a project or to a group; those of a group are
-- there for all projects below it.
CREATE TABLE labels (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  color        TEXT NOT NULL, -- #rrggbb
  description  TEXT NOT NULL DEFAULT '',
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX labels_project_id_name ON labels (project_id, name);
CREATE UNIQUE INDEX labels_namespace_id_name ON labels (namespace_id, name);

-- Each project orders the labels that it has for itself.
CREATE TABLE label_priorities (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  label_id   BIGINT NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
  priority   BIGINT NOT NULL,
  PRIMARY KEY (project_id, label_id)
);
CREATE INDEX label_priorities_label_id ON label_priorities (label_id);

CREATE TABLE milestones (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  iid          BIGINT NOT NULL,
  title        TEXT NOT NULL,
  description  TEXT NOT NULL DEFAULT '',
  state        TEXT NOT NULL DEFAULT 'active', -- or closed
  start_date   TEXT, -- YYYY-MM-DD
  due_date     TEXT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX milestones_project_id_iid ON milestones (project_id, iid);
CREATE UNIQUE INDEX milestones_namespace_id_iid ON milestones (namespace_id, iid);
CREATE UNIQUE INDEX milestones_project_id_title ON milestones (project_id, title);
CREATE UNIQUE INDEX milestones_namespace_id_title ON milestones (namespace_id, title);

CREATE TABLE issues (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid          BIGINT NOT NULL,
  state        TEXT NOT NULL DEFAULT 'opened', -- or closed
  confidential BOOLEAN NOT NULL DEFAULT FALSE,
  author_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  milestone_id BIGINT REFERENCES milestones (id) ON DELETE SET NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  title        TEXT NOT NULL,
  type         TEXT NOT NULL DEFAULT 'issue',
  locked       BOOLEAN, -- the discussion; null: nobody has said
  due_date     TEXT, -- YYYY-MM-DD
  weight       BIGINT,
  position     BIGINT NOT NULL DEFAULT 0, -- on boards and in manual order; 0: by its number
  notes        BIGINT NOT NULL DEFAULT 0, -- how many comments of users
  moved_to_id  BIGINT REFERENCES issues (id) ON DELETE SET NULL,
  closed_at    BIGINT,
  closed_by_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
  description  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX issues_project_id_iid ON issues (project_id, iid);
CREATE INDEX issues_project_id_created_at ON issues (project_id, created_at, id);
CREATE INDEX issues_project_id_updated_at ON issues (project_id, updated_at, id);
CREATE INDEX issues_project_id_state ON issues (project_id, state, created_at, id);
CREATE INDEX issues_created_at ON issues (created_at, id);
CREATE INDEX issues_author_id ON issues (author_id, id);
CREATE INDEX issues_milestone_id ON issues (milestone_id);
CREATE INDEX issues_moved_to_id ON issues (moved_to_id) WHERE moved_to_id IS NOT NULL;
CREATE INDEX issues_closed_by_id ON issues (closed_by_id) WHERE closed_by_id IS NOT NULL;

CREATE TABLE issue_labels (
  issue_id BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  label_id BIGINT NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
  PRIMARY KEY (issue_id, label_id)
);
CREATE INDEX issue_labels_label_id ON issue_labels (label_id, issue_id);

CREATE TABLE issue_assignees (
  issue_id BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  user_id  BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  PRIMARY KEY (issue_id, user_id)
);
CREATE INDEX issue_assignees_user_id ON issue_assignees (user_id, issue_id);

CREATE TABLE issue_links (
  id         AUTO_ID,
  source_id  BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  target_id  BIGINT NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  kind       TEXT NOT NULL, -- relates_to or blocks
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX issue_links_source_id_target_id ON issue_links (source_id, target_id);
CREATE INDEX issue_links_target_id ON issue_links (target_id);

-- Who wants to be told of a thing, or not any more.
CREATE TABLE subscriptions (
  kind       TEXT NOT NULL, -- Issue, Label, MergeRequest …
  thing_id   BIGINT NOT NULL,
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  subscribed BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (kind, thing_id, user_id)
);
CREATE INDEX subscriptions_user_id ON subscriptions (user_id);

-- What is said about a thing of a project: an issue, and later a merge request,
-- a commit or a snippet. Those of one discussion share its id.
CREATE TABLE notes (
  id             AUTO_ID,
  project_id     BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  noteable_type  TEXT NOT NULL, -- Issue
  noteable_id    BIGINT NOT NULL,
  noteable_iid   BIGINT NOT NULL DEFAULT 0, -- its number in the project, if it has one
  discussion_id  TEXT NOT NULL,
  type           TEXT NOT NULL DEFAULT '', -- DiscussionNote, DiffNote; empty for one that stands alone
  author_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  system         TEXT NOT NULL DEFAULT '', -- what the program tells of; empty for one that somebody wrote
  internal       BOOLEAN NOT NULL DEFAULT FALSE,
  position       TEXT NOT NULL DEFAULT '', -- JSON: where in a diff
  resolved_at    BIGINT,
  resolved_by_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  body           TEXT NOT NULL
);
CREATE INDEX notes_noteable ON notes (noteable_type, noteable_id, created_at, id);
CREATE INDEX notes_discussion ON notes (noteable_type, noteable_id, discussion_id, id);
CREATE INDEX notes_project_id ON notes (project_id);
CREATE INDEX notes_author_id ON notes (author_id);
CREATE INDEX notes_resolved_by_id ON notes (resolved_by_id) WHERE resolved_by_id IS NOT NULL;

CREATE TABLE badges (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name         TEXT NOT NULL DEFAULT '',
  link_url     TEXT NOT NULL,
  image_url    TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX badges_project_id ON badges (project_id, id);
CREATE INDEX badges_namespace_id ON badges (namespace_id, id);

CREATE TABLE boards (
  id                AUTO_ID,
  project_id        BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id      BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name              TEXT NOT NULL,
  hide_backlog_list BOOLEAN NOT NULL DEFAULT FALSE,
  hide_closed_list  BOOLEAN NOT NULL DEFAULT FALSE,
  milestone_id      BIGINT REFERENCES milestones (id) ON DELETE SET NULL,
  assignee_id       BIGINT REFERENCES users (id) ON DELETE SET NULL,
  weight            BIGINT,
  labels            TEXT NOT NULL DEFAULT '', -- that its issues have, by name, with commas between
  created_at        BIGINT NOT NULL
);
CREATE INDEX boards_project_id ON boards (project_id, id);
CREATE INDEX boards_namespace_id ON boards (namespace_id, id);

CREATE TABLE board_lists (
  id           AUTO_ID,
  board_id     BIGINT NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
  position     BIGINT NOT NULL,
  label_id     BIGINT REFERENCES labels (id) ON DELETE CASCADE,
  assignee_id  BIGINT REFERENCES users (id) ON DELETE CASCADE,
  milestone_id BIGINT REFERENCES milestones (id) ON DELETE CASCADE
);
CREATE INDEX board_lists_board_id ON board_lists (board_id, position);
CREATE INDEX board_lists_label_id ON board_lists (label_id);

-- Files that texts of a project link to. They lie in the store under uploads/.
CREATE TABLE uploads (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  secret     TEXT NOT NULL,
  name       TEXT NOT NULL,
  size       BIGINT NOT NULL,
  author_id  BIGINT REFERENCES users (id) ON DELETE SET NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uploads_project_id_secret ON uploads (project_id, secret);
