-- +goose Up

-- Where programs that watch something send their alerts.
CREATE TABLE alert_integrations (
  id              AUTO_ID,
  project_id      BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name            TEXT NOT NULL,
  type            TEXT NOT NULL, -- http or prometheus
  active          BOOLEAN NOT NULL,
  endpoint        TEXT NOT NULL, -- names it in its address: 16 hexadecimal digits
  token           TEXT NOT NULL DEFAULT '', -- sealed
  digest          TEXT NOT NULL, -- of the token
  payload_example TEXT NOT NULL DEFAULT '', -- JSON
  mappings        TEXT NOT NULL DEFAULT '', -- JSON: where in a payload its fields are
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
CREATE INDEX alert_integrations_project_id ON alert_integrations (project_id, id);
CREATE UNIQUE INDEX alert_integrations_endpoint ON alert_integrations (endpoint);
CREATE UNIQUE INDEX alert_integrations_digest ON alert_integrations (digest);

CREATE TABLE alerts (
  id              AUTO_ID,
  project_id      BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  iid             BIGINT NOT NULL, -- its number in the project
  status          TEXT NOT NULL, -- triggered, acknowledged, resolved, ignored
  severity        BIGINT NOT NULL, -- 0 critical, 1 high, 2 medium, 3 low, 4 info, 5 unknown
  started_at      BIGINT NOT NULL,
  ended_at        BIGINT,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL,
  events          BIGINT NOT NULL DEFAULT 1, -- how often it came
  assignee_id     BIGINT REFERENCES users (id) ON DELETE SET NULL,
  issue_id        BIGINT REFERENCES issues (id) ON DELETE SET NULL, -- the incident
  integration_id  BIGINT REFERENCES alert_integrations (id) ON DELETE SET NULL,
  fingerprint     TEXT NOT NULL, -- what comes with the same one is the same alert
  format          TEXT NOT NULL, -- of the payload: generic or metrics
  title           TEXT NOT NULL,
  description     TEXT NOT NULL DEFAULT '',
  service         TEXT NOT NULL DEFAULT '',
  monitoring_tool TEXT NOT NULL DEFAULT '',
  environment     TEXT NOT NULL DEFAULT '',
  hosts           TEXT NOT NULL DEFAULT '[]', -- JSON
  payload         TEXT NOT NULL -- JSON, as it came first
);
CREATE UNIQUE INDEX alerts_project_id_iid ON alerts (project_id, iid);
CREATE INDEX alerts_fingerprint ON alerts (project_id, fingerprint) WHERE status <> 'resolved';
CREATE INDEX alerts_status ON alerts (project_id, status, started_at, id);
CREATE INDEX alerts_started_at ON alerts (project_id, started_at, id);
CREATE INDEX alerts_updated_at ON alerts (project_id, updated_at, id);
CREATE INDEX alerts_over ON alerts (updated_at) WHERE status IN ('resolved', 'ignored');
CREATE INDEX alerts_severity ON alerts (project_id, severity, id);
CREATE INDEX alerts_events ON alerts (project_id, events, id);
CREATE INDEX alerts_assignee_id ON alerts (assignee_id) WHERE assignee_id IS NOT NULL;
CREATE INDEX alerts_issue_id ON alerts (issue_id) WHERE issue_id IS NOT NULL;
CREATE INDEX alerts_integration_id ON alerts (integration_id) WHERE integration_id IS NOT NULL;

-- What becomes of alerts; a project without a row does what is usual.
CREATE TABLE alert_settings (
  project_id          BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  create_issue        BOOLEAN NOT NULL,
  auto_close_incident BOOLEAN NOT NULL,
  send_email          BOOLEAN NOT NULL
);
