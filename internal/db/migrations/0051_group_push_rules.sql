-- +goose Up

-- Push rules of groups. New projects of the group and of those below start with
-- them.
CREATE TABLE group_push_rules (
  id           AUTO_ID,
  namespace_id BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  rules        TEXT NOT NULL, -- JSON, as in push_rules
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX group_push_rules_namespace_id ON group_push_rules (namespace_id);
