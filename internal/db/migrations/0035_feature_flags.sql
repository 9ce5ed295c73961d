-- +goose Up

-- Feature flags of projects.
CREATE TABLE feature_flags (
  id          AUTO_ID,
  project_id  BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid         BIGINT NOT NULL,
  name        TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  active      BOOLEAN NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX feature_flags_project_id_name ON feature_flags (project_id, name);
CREATE UNIQUE INDEX feature_flags_project_id_iid ON feature_flags (project_id, iid);

-- Lists of user IDs of an application, for strategies.
CREATE TABLE feature_flag_user_lists (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid        BIGINT NOT NULL,
  name       TEXT NOT NULL,
  user_xids  TEXT NOT NULL, -- separated by commas
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX feature_flag_user_lists_project_id_iid ON feature_flag_user_lists (project_id, iid);
CREATE UNIQUE INDEX feature_flag_user_lists_project_id_name ON feature_flag_user_lists (project_id, name);

-- Activation strategies of feature flags.
CREATE TABLE feature_flag_strategies (
  id           AUTO_ID,
  flag_id      BIGINT NOT NULL REFERENCES feature_flags (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  parameters   TEXT NOT NULL, -- JSON
  user_list_id BIGINT REFERENCES feature_flag_user_lists (id) ON DELETE CASCADE -- with the project; a list in use is not deleted alone
);
CREATE INDEX feature_flag_strategies_flag_id ON feature_flag_strategies (flag_id, id);
CREATE INDEX feature_flag_strategies_user_list_id ON feature_flag_strategies (user_list_id) WHERE user_list_id IS NOT NULL;

-- The environments that a strategy applies to.
CREATE TABLE feature_flag_scopes (
  id                AUTO_ID,
  strategy_id       BIGINT NOT NULL REFERENCES feature_flag_strategies (id) ON DELETE CASCADE,
  environment_scope TEXT NOT NULL
);
CREATE INDEX feature_flag_scopes_strategy_id ON feature_flag_scopes (strategy_id, id);

-- The instance ID with which applications fetch the flags of a project, and the
-- number of changes of its flags.
CREATE TABLE feature_flag_clients (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  digest     TEXT NOT NULL, -- of the instance ID
  sealed     TEXT NOT NULL,
  revision   BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX feature_flag_clients_project_id ON feature_flag_clients (project_id);
