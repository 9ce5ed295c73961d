-- +goose Up

-- What programs from outside found out about a commit. It belongs to a
-- pipeline, which is made for it when the commit has none. Of the rows with one
-- pipeline and name only the newest is the present state.
CREATE TABLE commit_statuses (
  id            AUTO_ID,
  project_id    BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  pipeline_id   BIGINT NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
  sha           TEXT NOT NULL,
  ref           TEXT NOT NULL,
  name          TEXT NOT NULL,
  status        TEXT NOT NULL,
  target_url    TEXT NOT NULL DEFAULT '',
  description   TEXT NOT NULL DEFAULT '',
  coverage      DOUBLE PRECISION,
  allow_failure BOOLEAN NOT NULL DEFAULT FALSE,
  latest        BOOLEAN NOT NULL DEFAULT TRUE,
  author_id     BIGINT REFERENCES users (id) ON DELETE SET NULL,
  created_at    BIGINT NOT NULL,
  started_at    BIGINT,
  finished_at   BIGINT
);
CREATE INDEX commit_statuses_project_id ON commit_statuses (project_id, sha, id);
CREATE UNIQUE INDEX commit_statuses_pipeline_id_name ON commit_statuses (pipeline_id, name) WHERE latest;
CREATE INDEX commit_statuses_author_id ON commit_statuses (author_id);

-- Whether a pipeline has such statuses: few do.
ALTER TABLE pipelines ADD COLUMN outside BOOLEAN NOT NULL DEFAULT FALSE;

-- Jobs that follow a pipeline of another project which they did not make.
CREATE TABLE mirror_jobs (
  job_id      BIGINT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  pipeline_id BIGINT NOT NULL -- it may be removed meanwhile
);

-- What is known of a topic beside the projects that have it, which name it in
-- project_topics. projects is how many those are.
CREATE TABLE topics (
  id          AUTO_ID,
  name        TEXT NOT NULL,
  title       TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '',
  avatar      TEXT NOT NULL DEFAULT '', -- its key in the store
  projects    BIGINT NOT NULL DEFAULT 0,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX topics_name ON topics (lower(name));
CREATE INDEX topics_projects ON topics (projects, id);
INSERT INTO topics (name, title, projects, created_at, updated_at)
  SELECT min(name), min(name), count(*), 0, 0 FROM project_topics GROUP BY lower(name);

-- The branch that an empty repository begins with, where somebody chose one,
-- and the path of the README of the default branch.
ALTER TABLE projects ADD COLUMN initial_branch TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN readme TEXT NOT NULL DEFAULT '';

-- The languages of the default branch as they were after the last push to it.
CREATE TABLE project_languages (
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  share      DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (project_id, name)
);
CREATE INDEX project_languages_name ON project_languages (lower(name), project_id);
