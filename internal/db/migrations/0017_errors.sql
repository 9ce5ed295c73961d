-- +goose Up

-- Where the errors of a project's programs are gathered: here, or in another
-- service whose address is kept. A project without a row has said nothing.
CREATE TABLE error_settings (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  active       BOOLEAN NOT NULL,
  integrated   BOOLEAN NOT NULL,
  project_name TEXT NOT NULL DEFAULT '', -- in the other service
  external_url TEXT NOT NULL DEFAULT '', -- for people
  api_url      TEXT NOT NULL DEFAULT '', -- for programs
  token        TEXT NOT NULL DEFAULT '', -- sealed
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX error_settings_project_id ON error_settings (project_id);

-- Keys by which programs send errors. They are shown again, so they are sealed
-- beside the digest by which they are found.
CREATE TABLE error_keys (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  active     BOOLEAN NOT NULL,
  digest     TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX error_keys_digest ON error_keys (digest);
CREATE INDEX error_keys_project_id ON error_keys (project_id, id);

-- Errors: all events of a project that are alike. The counts are of all that
-- ever came, also of those that are not kept.
CREATE TABLE errors (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  fingerprint   TEXT NOT NULL, -- digest of what makes events alike
  type          TEXT NOT NULL, -- of the exception; empty for a message
  title         TEXT NOT NULL, -- what the latest said
  culprit       TEXT NOT NULL, -- where it was
  platform      TEXT NOT NULL,
  level         TEXT NOT NULL,
  status        TEXT NOT NULL, -- unresolved, resolved, ignored
  events        BIGINT NOT NULL,
  users         BIGINT NOT NULL,
  first_seen_at BIGINT NOT NULL,
  last_seen_at  BIGINT NOT NULL,
  first_release TEXT NOT NULL,
  last_release  TEXT NOT NULL
);
CREATE UNIQUE INDEX errors_project_id_fingerprint ON errors (project_id, fingerprint);
CREATE INDEX errors_status ON errors (project_id, status, last_seen_at, id);
CREATE INDEX errors_last_seen_at ON errors (last_seen_at);

-- The latest events of each error.
CREATE TABLE error_events (
  id          AUTO_ID,
  project_id  BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  error_id    BIGINT NOT NULL REFERENCES errors (id) ON DELETE CASCADE,
  event_id    TEXT NOT NULL, -- of the sender
  occurred_at BIGINT NOT NULL,
  environment TEXT NOT NULL,
  release     TEXT NOT NULL,
  title       TEXT NOT NULL,
  tags        TEXT NOT NULL, -- JSON
  details     BYTES NOT NULL -- JSON, compressed
);
CREATE UNIQUE INDEX error_events_project_id_event_id ON error_events (project_id, event_id);
CREATE INDEX error_events_error_id ON error_events (error_id, id);

-- Ids of all events that came lately, kept or not: SDKs send again what they had
-- no answer to, and it counts once.
CREATE TABLE error_seen (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  event_id   TEXT NOT NULL,
  seen_at    BIGINT NOT NULL,
  PRIMARY KEY (project_id, event_id)
);
CREATE INDEX error_seen_seen_at ON error_seen (seen_at);

-- How many came in each hour since 1970.
CREATE TABLE error_hours (
  error_id BIGINT NOT NULL REFERENCES errors (id) ON DELETE CASCADE,
  hour     BIGINT NOT NULL,
  events   BIGINT NOT NULL,
  PRIMARY KEY (error_id, hour)
);
CREATE INDEX error_hours_hour ON error_hours (hour);

CREATE TABLE error_environments (
  error_id   BIGINT NOT NULL REFERENCES errors (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  events     BIGINT NOT NULL,
  PRIMARY KEY (error_id, name)
);
CREATE INDEX error_environments_project_id ON error_environments (project_id, name);

-- Whom an error has met, as digests.
CREATE TABLE error_users (
  error_id BIGINT NOT NULL REFERENCES errors (id) ON DELETE CASCADE,
  digest   TEXT NOT NULL,
  PRIMARY KEY (error_id, digest)
);
