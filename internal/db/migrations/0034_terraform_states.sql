-- +goose Up

-- Terraform states of projects, with their locks.
CREATE TABLE terraform_states (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  lock_id    TEXT NOT NULL DEFAULT '', -- chosen by the client; empty: not locked
  lock_info  TEXT NOT NULL DEFAULT '', -- what the client said about its lock, in JSON
  locked_by  BIGINT REFERENCES users (id) ON DELETE SET NULL,
  locked_at  BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX terraform_states_project_id_name ON terraform_states (project_id, name);
CREATE INDEX terraform_states_locked_by ON terraform_states (locked_by) WHERE locked_by IS NOT NULL;

-- Versions of states. The files are in the object store, encrypted; the row with
-- the highest ID is the current version.
CREATE TABLE terraform_state_versions (
  id         AUTO_ID,
  state_id   BIGINT NOT NULL REFERENCES terraform_states (id) ON DELETE CASCADE,
  serial     BIGINT NOT NULL,
  size       BIGINT NOT NULL, -- in bytes, not encrypted
  sha256     TEXT NOT NULL,   -- of the content, not encrypted
  blob       TEXT NOT NULL,   -- key in the object store
  sealed_key TEXT NOT NULL,   -- of the file
  created_by BIGINT REFERENCES users (id) ON DELETE SET NULL,
  job_id     BIGINT,          -- the CI/CD job that saved it; jobs are deleted on their own
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX terraform_state_versions_state_id_serial ON terraform_state_versions (state_id, serial);
CREATE INDEX terraform_state_versions_state_id ON terraform_state_versions (state_id, id);
CREATE UNIQUE INDEX terraform_state_versions_blob ON terraform_state_versions (blob);
CREATE INDEX terraform_state_versions_created_by ON terraform_state_versions (created_by) WHERE created_by IS NOT NULL;
