-- +goose Up

-- What somebody wants to be told of: everywhere (neither project nor group), in
-- a group with all below it, or in a project.
CREATE TABLE notification_settings (
  id           AUTO_ID,
  user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  level        TEXT NOT NULL, -- disabled, participating, watch, global, mention, custom
  events       TEXT NOT NULL DEFAULT '', -- JSON: what was chosen for custom; the rest is as usual
  email        TEXT NOT NULL DEFAULT '', -- everywhere alone: where letters go; empty for the primary address
  own_acts     BOOLEAN NOT NULL DEFAULT FALSE -- everywhere alone: also of what he does himself
);
CREATE INDEX notification_settings_of_user ON notification_settings (user_id);
CREATE UNIQUE INDEX notification_settings_project_id_user_id ON notification_settings (project_id, user_id) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX notification_settings_namespace_id_user_id ON notification_settings (namespace_id, user_id) WHERE namespace_id IS NOT NULL;
CREATE UNIQUE INDEX notification_settings_user_id ON notification_settings (user_id) WHERE project_id IS NULL AND namespace_id IS NULL;

-- What happened and is to be told, written in the transaction of the act.
CREATE TABLE notification_acts (
  id         AUTO_ID,
  event      TEXT NOT NULL, -- new_issue, new_note …
  kind       TEXT NOT NULL, -- of the thing: Issue, MergeRequest, Pipeline, Project
  thing_id   BIGINT NOT NULL,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  author_id  BIGINT REFERENCES users (id) ON DELETE CASCADE, -- null: nobody did it
  once       TEXT, -- of those with the same key one alone is told
  details    TEXT NOT NULL, -- JSON
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX notification_acts_once ON notification_acts (once) WHERE once IS NOT NULL;
CREATE INDEX notification_acts_thing ON notification_acts (kind, thing_id, event);
CREATE INDEX notification_acts_project_id ON notification_acts (project_id);
CREATE INDEX notification_acts_author_id ON notification_acts (author_id);
CREATE INDEX notification_acts_created_at ON notification_acts (created_at);

-- A letter tells one person of acts on one thing. What happens while it waits
-- joins it.
CREATE TABLE notification_letters (
  id         AUTO_ID,
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind       TEXT NOT NULL,
  thing_id   BIGINT NOT NULL,
  state      TEXT NOT NULL, -- waiting, closed, sending, sent, dropped, refused, unclear
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX notification_letters_user_id_kind_thing_id ON notification_letters (user_id, kind, thing_id) WHERE state = 'waiting';
CREATE INDEX notification_letters_user_id ON notification_letters (user_id);
CREATE INDEX notification_letters_created_at ON notification_letters (created_at);

-- Each act is told to each person once.
CREATE TABLE notification_items (
  act_id    BIGINT NOT NULL REFERENCES notification_acts (id) ON DELETE CASCADE,
  user_id   BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  letter_id BIGINT NOT NULL REFERENCES notification_letters (id) ON DELETE CASCADE,
  reason    TEXT NOT NULL, -- why he is told
  PRIMARY KEY (act_id, user_id)
);
CREATE INDEX notification_items_letter_id ON notification_items (letter_id, act_id);
CREATE INDEX notification_items_user_id ON notification_items (user_id);

-- Who takes part in a thing is subscribed to it by that; who asked for it is
-- told of it whatever his settings are.
ALTER TABLE subscriptions ADD COLUMN asked BOOLEAN NOT NULL DEFAULT FALSE;

CREATE INDEX issues_due_date ON issues (due_date, id) WHERE due_date IS NOT NULL;
