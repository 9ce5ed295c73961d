-- +goose Up
-- oldest: 0060

-- Repositories of other servers that projects are pushed to or pulled from. Secrets
-- are the credentials and the private SSH key, encrypted with the instance key. The
-- run that updates a mirror holds it until lease_until.
CREATE TABLE mirrors (
  id                AUTO_ID,
  project_id        BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id           BIGINT REFERENCES users (id) ON DELETE SET NULL,
  direction         TEXT NOT NULL,
  enabled           BOOLEAN NOT NULL,
  url               TEXT NOT NULL,
  secrets           TEXT NOT NULL DEFAULT '',
  has_credentials   BOOLEAN NOT NULL DEFAULT FALSE,
  auth_method       TEXT NOT NULL,
  public_key        TEXT NOT NULL DEFAULT '',
  host_keys         TEXT NOT NULL DEFAULT '',
  only_protected    BOOLEAN NOT NULL DEFAULT FALSE,
  keep_diverged     BOOLEAN NOT NULL DEFAULT FALSE,
  branch_regex      TEXT NOT NULL DEFAULT '',
  trigger_pipelines BOOLEAN NOT NULL DEFAULT FALSE,
  status            TEXT NOT NULL,
  last_error        TEXT NOT NULL DEFAULT '',
  started_at        BIGINT,
  updated_at        BIGINT,
  succeeded_at      BIGINT,
  failures          BIGINT NOT NULL DEFAULT 0,
  next_at           BIGINT,
  run               TEXT NOT NULL DEFAULT '',
  lease_until       BIGINT,
  created_at        BIGINT NOT NULL
);
CREATE INDEX mirrors_project_id_direction ON mirrors (project_id, direction, id);
CREATE UNIQUE INDEX mirrors_project_id ON mirrors (project_id) WHERE direction = 'pull';
CREATE INDEX mirrors_user_id ON mirrors (user_id);
CREATE INDEX mirrors_next_at ON mirrors (next_at);
