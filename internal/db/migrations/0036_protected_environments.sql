-- +goose Up

-- Protected environments: of a project by name, of a group by deployment tier.
-- One of project_id and namespace_id is set.
CREATE TABLE protected_environments (
  id                      AUTO_ID,
  project_id              BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id            BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name                    TEXT NOT NULL,
  required_approval_count BIGINT NOT NULL DEFAULT 0, -- of those who may deploy, if there are no approval rules
  created_at              BIGINT NOT NULL,
  updated_at              BIGINT NOT NULL
);
CREATE UNIQUE INDEX protected_environments_project_id_name ON protected_environments (project_id, name) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX protected_environments_namespace_id_name ON protected_environments (namespace_id, name) WHERE namespace_id IS NOT NULL;

-- Who may deploy to a protected environment, and who approves deployments.
CREATE TABLE protected_environment_rules (
  id                       AUTO_ID,
  protected_environment_id BIGINT NOT NULL REFERENCES protected_environments (id) ON DELETE CASCADE,
  kind                     TEXT NOT NULL, -- deploy or approve
  access_level             BIGINT,
  user_id                  BIGINT REFERENCES users (id) ON DELETE CASCADE,
  group_id                 BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  group_inheritance_type   BIGINT NOT NULL DEFAULT 0, -- 0: direct members of the group, 1: inherited members too
  required_approvals       BIGINT NOT NULL DEFAULT 0  -- of an approval rule
);
CREATE INDEX protected_environment_rules_environment ON protected_environment_rules (protected_environment_id, id);
CREATE INDEX protected_environment_rules_user_id ON protected_environment_rules (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_environment_rules_group_id ON protected_environment_rules (group_id) WHERE group_id IS NOT NULL;

-- Approvals and rejections of deployments.
CREATE TABLE deployment_approvals (
  id            AUTO_ID,
  deployment_id BIGINT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
  user_id       BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  rule_id       BIGINT REFERENCES protected_environment_rules (id) ON DELETE SET NULL, -- the rule that it is limited to
  status        TEXT NOT NULL, -- approved or rejected
  comment       TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX deployment_approvals_deployment_id_user_id ON deployment_approvals (deployment_id, user_id);
CREATE INDEX deployment_approvals_user_id ON deployment_approvals (user_id);
CREATE INDEX deployment_approvals_rule_id ON deployment_approvals (rule_id) WHERE rule_id IS NOT NULL;

-- Periods in which jobs should not deploy, as two cron rules.
CREATE TABLE freeze_periods (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  freeze_start  TEXT NOT NULL,
  freeze_end    TEXT NOT NULL,
  cron_timezone TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);
CREATE INDEX freeze_periods_project_id ON freeze_periods (project_id, id);
