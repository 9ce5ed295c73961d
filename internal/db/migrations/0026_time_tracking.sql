-- +goose Up

-- Time tracking of issues and merge requests, in seconds. The total of the
-- timelogs is kept with the object, so that lists need not sum them up.
ALTER TABLE issues ADD COLUMN time_estimate BIGINT NOT NULL DEFAULT 0;
ALTER TABLE issues ADD COLUMN time_spent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merge_requests ADD COLUMN time_estimate BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merge_requests ADD COLUMN time_spent BIGINT NOT NULL DEFAULT 0;

-- Time that users spent on an issue or merge request; negative if it was
-- subtracted.
CREATE TABLE timelogs (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  noteable_type TEXT NOT NULL,
  noteable_id   BIGINT NOT NULL,
  user_id       BIGINT REFERENCES users (id) ON DELETE SET NULL,
  seconds       BIGINT NOT NULL,
  spent_at      BIGINT NOT NULL,
  summary       TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL
);
CREATE INDEX timelogs_noteable ON timelogs (noteable_type, noteable_id, id);
CREATE INDEX timelogs_project ON timelogs (project_id);
CREATE INDEX timelogs_user ON timelogs (user_id);
