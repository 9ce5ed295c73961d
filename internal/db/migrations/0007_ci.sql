-- +goose Up

-- Pipelines. Numbers within a project (iid) come from project_counters.
CREATE TABLE pipelines (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid           BIGINT NOT NULL,
  status        TEXT NOT NULL,
  source        TEXT NOT NULL,
  ref           TEXT NOT NULL,
  tag           BOOLEAN NOT NULL DEFAULT FALSE,
  sha           TEXT NOT NULL,
  before_sha    TEXT NOT NULL,
  name          TEXT NOT NULL DEFAULT '',
  user_id       BIGINT,
  protected     BOOLEAN NOT NULL DEFAULT FALSE,
  yaml_errors   TEXT NOT NULL DEFAULT '',
  -- The names of its stages, in their order: JSON.
  stages        TEXT NOT NULL DEFAULT '[]',
  -- Variables that were given with it: JSON, sealed.
  variables     TEXT NOT NULL DEFAULT '',
  auto_cancel   TEXT NOT NULL DEFAULT 'conservative',
  cancel_on_failure BOOLEAN NOT NULL DEFAULT FALSE,
  -- The trigger job that made it, in another pipeline or as its child.
  parent_job_id BIGINT,
  parent_id     BIGINT REFERENCES pipelines (id) ON DELETE SET NULL,
  child         BOOLEAN NOT NULL DEFAULT FALSE,
  schedule_id   BIGINT,
  -- What it was made for, where the same must not make another: a push, a
  -- time of a schedule, a trigger job.
  origin        TEXT,
  coverage      DOUBLE PRECISION,
  -- Who used a trigger token, and other facts for variables: JSON.
  facts         TEXT NOT NULL DEFAULT '{}',
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  started_at    BIGINT,
  finished_at   BIGINT,
  archived_at   BIGINT -- its logs and artifacts were removed by age
);
CREATE UNIQUE INDEX pipelines_project_id_iid ON pipelines (project_id, iid);
CREATE UNIQUE INDEX pipelines_origin ON pipelines (origin);
CREATE INDEX pipelines_project_id ON pipelines (project_id, id);
CREATE INDEX pipelines_project_id_ref ON pipelines (project_id, ref, id);
CREATE INDEX pipelines_project_id_sha ON pipelines (project_id, sha, id);
CREATE INDEX pipelines_project_id_status ON pipelines (project_id, status, id);
CREATE INDEX pipelines_project_id_updated_at ON pipelines (project_id, updated_at, id);
CREATE INDEX pipelines_user_id ON pipelines (user_id);
CREATE INDEX pipelines_parent_id ON pipelines (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX pipelines_parent_job_id ON pipelines (parent_job_id) WHERE parent_job_id IS NOT NULL;
CREATE INDEX pipelines_schedule_id ON pipelines (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX pipelines_created_at ON pipelines (created_at);

CREATE TABLE project_counters (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  kind       TEXT NOT NULL, -- pipeline, issue …
  value      BIGINT NOT NULL,
  PRIMARY KEY (project_id, kind)
);

-- Jobs, and trigger jobs (bridges), which no runner runs. What is searched and
-- changed stands in columns; what a job was made of is read whole: JSON.
CREATE TABLE jobs (
  id                  AUTO_ID,
  project_id          BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  pipeline_id         BIGINT NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
  status              TEXT NOT NULL,
  bridge              BOOLEAN NOT NULL DEFAULT FALSE,
  retried             BOOLEAN NOT NULL DEFAULT FALSE,
  name                TEXT NOT NULL,
  stage               TEXT NOT NULL,
  stage_index         BIGINT NOT NULL,
  run_when            TEXT NOT NULL,
  allow_failure       BOOLEAN NOT NULL DEFAULT FALSE,
  needs               TEXT NOT NULL DEFAULT '', -- JSON; empty waits for the stages before
  ref                 TEXT NOT NULL,
  tag                 BOOLEAN NOT NULL DEFAULT FALSE,
  protected           BOOLEAN NOT NULL DEFAULT FALSE,
  interruptible       BOOLEAN NOT NULL DEFAULT FALSE,
  user_id             BIGINT,
  tag_set_id          BIGINT,
  attempt             BIGINT NOT NULL DEFAULT 0, -- how often it was run again by itself
  retry_of            BIGINT,                    -- the job that it is another try of
  timeout             BIGINT NOT NULL,           -- seconds
  resource_group_id   BIGINT,
  environment_id      BIGINT,
  runner_id           BIGINT,
  runner_manager_id   BIGINT,
  token_digest        BYTES,
  failure_reason      TEXT NOT NULL DEFAULT '',
  exit_code           BIGINT,
  coverage            DOUBLE PRECISION,
  canceling           BOOLEAN NOT NULL DEFAULT FALSE, -- canceled, and its runner may still finish
  created_at          BIGINT NOT NULL,
  updated_at          BIGINT NOT NULL,
  queued_at           BIGINT,
  claimed_at          BIGINT, -- a runner got it and has not begun yet
  started_at          BIGINT,
  heard_at            BIGINT, -- its runner was heard of last
  finished_at         BIGINT,
  scheduled_at        BIGINT,
  erased_at           BIGINT,
  artifacts_expire_at BIGINT,
  options             TEXT NOT NULL DEFAULT '{}',
  variables           TEXT NOT NULL DEFAULT '' -- that it was started with by hand: JSON, sealed
);
CREATE INDEX jobs_project_id ON jobs (project_id, bridge, id);
CREATE INDEX jobs_project_id_status ON jobs (project_id, bridge, status, id);
CREATE INDEX jobs_pipeline_id ON jobs (pipeline_id, id);
CREATE INDEX jobs_runner_id ON jobs (runner_id, id) WHERE runner_id IS NOT NULL;
CREATE INDEX jobs_user_id ON jobs (user_id);
CREATE UNIQUE INDEX jobs_token_digest ON jobs (token_digest) WHERE token_digest IS NOT NULL;
CREATE INDEX jobs_running ON jobs (project_id) WHERE status = 'running';
CREATE INDEX jobs_claimed_at ON jobs (claimed_at) WHERE claimed_at IS NOT NULL;
CREATE INDEX jobs_heard_at ON jobs (heard_at) WHERE status = 'running';
CREATE INDEX jobs_scheduled_at ON jobs (scheduled_at) WHERE status = 'scheduled';
CREATE INDEX jobs_resource_group_id ON jobs (resource_group_id, status, pipeline_id, id) WHERE resource_group_id IS NOT NULL;
CREATE INDEX jobs_canceling ON jobs (heard_at) WHERE canceling;
CREATE INDEX jobs_waiting ON jobs (id) WHERE status = 'waiting_for_resource';
CREATE INDEX jobs_environment_id ON jobs (environment_id, id) WHERE environment_id IS NOT NULL;
CREATE INDEX jobs_artifacts_expire_at ON jobs (artifacts_expire_at) WHERE artifacts_expire_at IS NOT NULL;

-- Each set of tags that a job ever asked for, sorted and joined by newlines:
-- a runner knows by a few comparisons which of them it can serve.
CREATE TABLE tag_sets (
  id   AUTO_ID,
  tags TEXT NOT NULL
);
CREATE UNIQUE INDEX tag_sets_tags ON tag_sets (tags);

-- The jobs that wait for a runner. Whoever deletes a row has the job.
CREATE TABLE job_queue (
  job_id     BIGINT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL,
  tag_set_id BIGINT NOT NULL,
  protected  BOOLEAN NOT NULL,
  queued_at  BIGINT NOT NULL
);
CREATE INDEX job_queue_tag_set_id ON job_queue (tag_set_id, project_id, protected, job_id);
CREATE INDEX job_queue_queued_at ON job_queue (queued_at);

CREATE TABLE resource_groups (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  key          TEXT NOT NULL,
  process_mode TEXT NOT NULL DEFAULT 'unordered',
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX resource_groups_project_id_key ON resource_groups (project_id, key);

CREATE TABLE environments (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  slug         TEXT NOT NULL,
  external_url TEXT NOT NULL DEFAULT '',
  description  TEXT NOT NULL DEFAULT '',
  tier         TEXT NOT NULL,
  state        TEXT NOT NULL DEFAULT 'available',
  on_stop      TEXT NOT NULL DEFAULT '', -- the name of the job that stops it
  auto_stop_at BIGINT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX environments_project_id_name ON environments (project_id, name);
CREATE INDEX environments_auto_stop_at ON environments (auto_stop_at) WHERE auto_stop_at IS NOT NULL;

CREATE TABLE deployments (
  id             AUTO_ID,
  project_id     BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid            BIGINT NOT NULL,
  environment_id BIGINT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
  job_id         BIGINT REFERENCES jobs (id) ON DELETE SET NULL,
  user_id        BIGINT,
  status         TEXT NOT NULL,
  ref            TEXT NOT NULL,
  tag            BOOLEAN NOT NULL DEFAULT FALSE,
  sha            TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  finished_at    BIGINT
);
CREATE UNIQUE INDEX deployments_project_id_iid ON deployments (project_id, iid);
CREATE INDEX deployments_project_id ON deployments (project_id, id);
CREATE INDEX deployments_environment_id ON deployments (environment_id, id);
CREATE INDEX deployments_user_id ON deployments (user_id);
CREATE INDEX deployments_job_id ON deployments (job_id);

-- Variables of groups and projects: one of the two is set.
CREATE TABLE ci_variables (
  id                AUTO_ID,
  project_id        BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id      BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  key               TEXT NOT NULL,
  description       TEXT,
  variable_type     TEXT NOT NULL DEFAULT 'env_var',
  value             TEXT NOT NULL, -- sealed
  environment_scope TEXT NOT NULL DEFAULT '*',
  protected         BOOLEAN NOT NULL DEFAULT FALSE,
  masked            BOOLEAN NOT NULL DEFAULT FALSE,
  hidden            BOOLEAN NOT NULL DEFAULT FALSE,
  raw               BOOLEAN NOT NULL DEFAULT FALSE,
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);
CREATE UNIQUE INDEX ci_variables_project_id_key_environment_scope ON ci_variables (project_id, key, environment_scope);
CREATE UNIQUE INDEX ci_variables_namespace_id_key_environment_scope ON ci_variables (namespace_id, key, environment_scope);

CREATE TABLE pipeline_triggers (
  id          AUTO_ID,
  project_id  BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  owner_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  description TEXT NOT NULL DEFAULT '',
  token       TEXT NOT NULL,  -- sealed: its owner may read it again
  digest      BYTES NOT NULL,
  last_used   BIGINT,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX pipeline_triggers_digest ON pipeline_triggers (digest);
CREATE INDEX pipeline_triggers_project_id ON pipeline_triggers (project_id, id);
CREATE INDEX pipeline_triggers_owner_id ON pipeline_triggers (owner_id);

CREATE TABLE pipeline_schedules (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  owner_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  description   TEXT NOT NULL,
  ref           TEXT NOT NULL,
  cron          TEXT NOT NULL,
  cron_timezone TEXT NOT NULL DEFAULT 'UTC',
  active        BOOLEAN NOT NULL DEFAULT TRUE,
  variables     TEXT NOT NULL DEFAULT '', -- JSON, sealed
  next_run_at   BIGINT,
  last_pipeline_id BIGINT,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);
CREATE INDEX pipeline_schedules_project_id ON pipeline_schedules (project_id, id);
CREATE INDEX pipeline_schedules_next_run_at ON pipeline_schedules (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX pipeline_schedules_owner_id ON pipeline_schedules (owner_id);

CREATE TABLE runners (
  id               AUTO_ID,
  kind             TEXT NOT NULL, -- instance_type, group_type or project_type
  namespace_id     BIGINT REFERENCES namespaces (id) ON DELETE CASCADE, -- of a group's runner
  description      TEXT NOT NULL DEFAULT '',
  token_digest     BYTES NOT NULL,
  token_expires_at BIGINT,
  paused           BOOLEAN NOT NULL DEFAULT FALSE,
  locked           BOOLEAN NOT NULL DEFAULT FALSE,
  run_untagged     BOOLEAN NOT NULL DEFAULT TRUE,
  protected_only   BOOLEAN NOT NULL DEFAULT FALSE,
  tags             TEXT NOT NULL DEFAULT '', -- sorted, joined by newlines
  maximum_timeout  BIGINT,
  maintenance_note TEXT NOT NULL DEFAULT '',
  creator_id       BIGINT,
  contacted_at     BIGINT,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX runners_token_digest ON runners (token_digest);
CREATE INDEX runners_namespace_id ON runners (namespace_id) WHERE namespace_id IS NOT NULL;

-- The processes that run with one token.
CREATE TABLE runner_managers (
  id           AUTO_ID,
  runner_id    BIGINT NOT NULL REFERENCES runners (id) ON DELETE CASCADE,
  system_id    TEXT NOT NULL,
  info         TEXT NOT NULL DEFAULT '{}', -- name, version, revision, platform, architecture, executor, features: JSON
  version      TEXT NOT NULL DEFAULT '',
  ip           TEXT NOT NULL DEFAULT '',
  contacted_at BIGINT,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX runner_managers_runner_id_system_id ON runner_managers (runner_id, system_id);

-- Which projects a project's runner serves; the first one owns it.
CREATE TABLE runner_projects (
  runner_id  BIGINT NOT NULL REFERENCES runners (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  position   BIGINT NOT NULL,
  PRIMARY KEY (runner_id, project_id)
);
CREATE INDEX runner_projects_project_id ON runner_projects (project_id, runner_id);

-- By these tokens runners register themselves: at a project, at a group or,
-- when neither is set, for the whole instance.
CREATE TABLE runner_registration_tokens (
  id           AUTO_ID,
  project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  digest       BYTES NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX runner_registration_tokens_digest ON runner_registration_tokens (digest);
CREATE INDEX runner_registration_tokens_project_id ON runner_registration_tokens (project_id);
CREATE INDEX runner_registration_tokens_namespace_id ON runner_registration_tokens (namespace_id);

CREATE TABLE job_artifacts (
  id         AUTO_ID,
  job_id     BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL,
  kind       TEXT NOT NULL, -- archive, metadata, trace, junit, dotenv …
  format     TEXT NOT NULL,
  filename   TEXT NOT NULL,
  size       BIGINT NOT NULL,
  sha256     TEXT NOT NULL DEFAULT '',
  blob       TEXT NOT NULL, -- its key in the store
  expires_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX job_artifacts_job_id_kind ON job_artifacts (job_id, kind);
CREATE INDEX job_artifacts_project_id_size ON job_artifacts (project_id, size);
CREATE INDEX job_artifacts_trace ON job_artifacts (created_at) WHERE kind = 'trace';
CREATE INDEX job_artifacts_expires_at ON job_artifacts (expires_at) WHERE expires_at IS NOT NULL;

-- The live part of logs where several nodes write: on one node it is a file.
CREATE TABLE log_chunks (
  job_id   BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  position BIGINT NOT NULL, -- of the first byte
  content  BYTES NOT NULL,
  PRIMARY KEY (job_id, position)
);

-- Whose job tokens open a project. Without a row nothing but its own do; with
-- inbound false, those of all projects.
CREATE TABLE job_token_settings (
  project_id BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  inbound    BOOLEAN NOT NULL
);
CREATE TABLE job_token_allowlist (
  id                  AUTO_ID,
  project_id          BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  target_project_id   BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  target_namespace_id BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  added_by            BIGINT,
  created_at          BIGINT NOT NULL
);
CREATE UNIQUE INDEX job_token_allowlist_project_id_target_project_id ON job_token_allowlist (project_id, target_project_id);
CREATE UNIQUE INDEX job_token_allowlist_project_id_target_namespace_id ON job_token_allowlist (project_id, target_namespace_id);

CREATE TABLE cluster_agents (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  created_by BIGINT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX cluster_agents_project_id_name ON cluster_agents (project_id, name);

-- Files that are being sent: a row goes when another one names the file, so
-- that what a crash leaves behind is found.
CREATE TABLE job_uploads (
  blob       TEXT PRIMARY KEY,
  created_at BIGINT NOT NULL
);
CREATE INDEX job_uploads_created_at ON job_uploads (created_at);
