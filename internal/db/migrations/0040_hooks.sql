-- +goose Up

-- Webhooks of projects and groups, system hooks, and chat integrations. A hook
-- without a project and a group is a system hook.
CREATE TABLE hooks (
  id              AUTO_ID,
  kind            TEXT NOT NULL, -- webhook, slack or mattermost
  project_id      BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id    BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  name            TEXT NOT NULL DEFAULT '',
  description     TEXT NOT NULL DEFAULT '',
  url             TEXT NOT NULL, -- with {variable} for masked parts
  triggers        TEXT NOT NULL, -- names of events, separated by spaces
  branch_strategy TEXT NOT NULL DEFAULT 'wildcard', -- regex or all_branches
  branch_filter   TEXT NOT NULL DEFAULT '',
  template        TEXT NOT NULL DEFAULT '', -- of the request body
  verify_tls      BOOLEAN NOT NULL DEFAULT TRUE,
  disabled        BOOLEAN NOT NULL DEFAULT FALSE, -- permanently, after too many failures; of an integration: inactive
  secrets         TEXT NOT NULL DEFAULT '', -- JSON, sealed: token, signing token, headers, URL variables
  options         TEXT NOT NULL DEFAULT '{}', -- JSON: of an integration
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
CREATE INDEX hooks_project ON hooks (project_id, kind, id);
CREATE INDEX hooks_namespace ON hooks (namespace_id, kind, id);
CREATE INDEX hooks_system ON hooks (id) WHERE project_id IS NULL AND namespace_id IS NULL;

-- What deliveries change about a hook. It is apart from its configuration, which
-- is cached.
CREATE TABLE hook_states (
  hook_id        BIGINT PRIMARY KEY REFERENCES hooks (id) ON DELETE CASCADE,
  failures       BIGINT NOT NULL DEFAULT 0, -- consecutive
  disabled_until BIGINT,
  due_at         BIGINT, -- when the next delivery is tried; while a delivery runs: when its lease ends
  slow           BOOLEAN NOT NULL DEFAULT FALSE,
  minute         BIGINT NOT NULL DEFAULT 0, -- of the rate limit
  calls          BIGINT NOT NULL DEFAULT 0, -- in that minute
  logged         BIGINT NOT NULL DEFAULT 0  -- rows of the delivery log, about
);
CREATE INDEX hook_states_due ON hook_states (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hook_states_logged ON hook_states (logged) WHERE logged > 1000;

-- Payloads of events that at least one hook listens to.
CREATE TABLE hook_events (
  id         AUTO_ID,
  uuid       TEXT NOT NULL,
  project_id BIGINT, -- whose repository completes the payload
  trigger    TEXT NOT NULL,
  header     TEXT NOT NULL, -- X-Gitlab-Event
  payload    TEXT NOT NULL, -- JSON
  pending    TEXT NOT NULL DEFAULT '', -- JSON: what is read from the repository before the first delivery
  created_at BIGINT NOT NULL
);
CREATE INDEX hook_events_uuid ON hook_events (uuid);
CREATE INDEX hook_events_created_at ON hook_events (created_at, id);

-- Deliveries that wait, and the log of those that are done.
CREATE TABLE hook_deliveries (
  id               AUTO_ID,
  hook_id          BIGINT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
  event_id         BIGINT NOT NULL REFERENCES hook_events (id) ON DELETE CASCADE,
  waiting          BOOLEAN NOT NULL,
  key              TEXT NOT NULL, -- Idempotency-Key
  attempts         BIGINT NOT NULL DEFAULT 0,
  url              TEXT NOT NULL DEFAULT '', -- with variables masked
  request_headers  TEXT NOT NULL DEFAULT '', -- JSON, with secrets masked
  request_body     TEXT NOT NULL DEFAULT '', -- if it is not the payload of the event
  response_status  BIGINT NOT NULL DEFAULT 0, -- 0: there was no response
  response_headers TEXT NOT NULL DEFAULT '', -- JSON
  response_body    TEXT NOT NULL DEFAULT '',
  error            TEXT NOT NULL DEFAULT '',
  duration         BIGINT NOT NULL DEFAULT 0, -- microseconds
  created_at       BIGINT NOT NULL,
  delivered_at     BIGINT
);
CREATE INDEX hook_deliveries_waiting ON hook_deliveries (hook_id, id) WHERE waiting;
CREATE INDEX hook_deliveries_log ON hook_deliveries (hook_id, waiting, id);
CREATE INDEX hook_deliveries_status ON hook_deliveries (hook_id, response_status, id);
CREATE INDEX hook_deliveries_event ON hook_deliveries (event_id);

-- Access tokens that expire soon are announced to hooks.
CREATE INDEX access_tokens_expires_at ON access_tokens (expires_at) WHERE expires_at IS NOT NULL;
