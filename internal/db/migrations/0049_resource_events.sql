-- +goose Up

-- Changes to the labels, the state, the milestone and the weight of issues and
-- merge requests.
CREATE TABLE resource_events (
  id            AUTO_ID,
  kind          TEXT NOT NULL, -- label, state, milestone or weight
  noteable_type TEXT NOT NULL,
  noteable_id   BIGINT NOT NULL,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id       BIGINT REFERENCES users (id) ON DELETE SET NULL,
  action        TEXT NOT NULL, -- add or remove; of a state: closed, reopened or merged
  label_id      BIGINT REFERENCES labels (id) ON DELETE SET NULL,
  milestone_id  BIGINT REFERENCES milestones (id) ON DELETE CASCADE,
  weight        BIGINT,
  created_at    BIGINT NOT NULL
);
CREATE INDEX resource_events_noteable ON resource_events (noteable_type, noteable_id, kind, id);
CREATE INDEX resource_events_project_id ON resource_events (project_id);
CREATE INDEX resource_events_user_id ON resource_events (user_id);
CREATE INDEX resource_events_label_id ON resource_events (label_id) WHERE label_id IS NOT NULL;
CREATE INDEX resource_events_milestone_id ON resource_events (milestone_id) WHERE milestone_id IS NOT NULL;
