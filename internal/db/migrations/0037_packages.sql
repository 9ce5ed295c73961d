-- +goose Up

-- The package registry of a project was a flag that nothing read.
ALTER TABLE projects ADD COLUMN package_registry_access_level TEXT NOT NULL DEFAULT 'enabled';
UPDATE projects SET package_registry_access_level = 'disabled', settings = replace(settings, '"PackagesEnabled":false', '"PackageRegistry":"disabled"')
WHERE settings LIKE '%"PackagesEnabled":false%';

-- Content of package files, each stored once. One that no file refers to any
-- more is released, and removed later unless a file refers to it again.
CREATE TABLE package_blobs (
  id          AUTO_ID,
  sha256      TEXT NOT NULL,
  sha1        TEXT NOT NULL,
  md5         TEXT NOT NULL,
  size        BIGINT NOT NULL,
  blob        TEXT NOT NULL, -- its key in the store
  released_at BIGINT,
  created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX package_blobs_sha256 ON package_blobs (sha256);
CREATE INDEX package_blobs_released_at ON package_blobs (released_at) WHERE released_at IS NOT NULL;

-- Uploads that have no row yet: their content is removed after a crash.
CREATE TABLE package_uploads (
  blob       TEXT PRIMARY KEY,
  created_at BIGINT NOT NULL
);
CREATE INDEX package_uploads_created_at ON package_uploads (created_at);

CREATE TABLE packages (
  id                 AUTO_ID,
  project_id         BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  type               TEXT NOT NULL, -- generic, npm, pypi
  name               TEXT NOT NULL,
  lookup             TEXT NOT NULL, -- the name as clients compare it
  version            TEXT NOT NULL,
  status             TEXT NOT NULL, -- default, hidden
  metadata           TEXT NOT NULL, -- JSON, by type
  creator_id         BIGINT REFERENCES users (id) ON DELETE SET NULL,
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL,
  last_downloaded_at BIGINT
);
CREATE UNIQUE INDEX packages_project_id_type_lookup_version ON packages (project_id, type, lookup, version);
CREATE INDEX packages_project_id_created_at ON packages (project_id, created_at, id);
CREATE INDEX packages_project_id_name ON packages (project_id, name, id);
CREATE INDEX packages_project_id_version ON packages (project_id, version, id);
CREATE INDEX packages_project_id_type ON packages (project_id, type, id);
CREATE INDEX packages_type_lookup ON packages (type, lookup, project_id);
CREATE INDEX packages_created_at ON packages (created_at, id);
CREATE INDEX packages_creator_id ON packages (creator_id);

CREATE TABLE package_files (
  id         AUTO_ID,
  package_id BIGINT NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  blob_id    BIGINT NOT NULL REFERENCES package_blobs (id),
  name       TEXT NOT NULL,
  size       BIGINT NOT NULL,
  metadata   TEXT NOT NULL, -- JSON, by type
  created_at BIGINT NOT NULL
);
CREATE INDEX package_files_package_id_name ON package_files (package_id, name, id);
CREATE INDEX package_files_blob_id ON package_files (blob_id, project_id);
CREATE INDEX package_files_project_id_size ON package_files (project_id, size);

-- Tags of npm packages: each names one version.
CREATE TABLE package_tags (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  package_name TEXT NOT NULL,
  name         TEXT NOT NULL,
  package_id   BIGINT NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX package_tags_project_id_package_name_name ON package_tags (project_id, package_name, name);
CREATE INDEX package_tags_package_id ON package_tags (package_id);

-- Pipelines that published a package.
CREATE TABLE package_pipelines (
  package_id  BIGINT NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
  pipeline_id BIGINT NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
  PRIMARY KEY (package_id, pipeline_id)
) BY_KEY;
CREATE INDEX package_pipelines_pipeline_id ON package_pipelines (pipeline_id);

CREATE TABLE package_protection_rules (
  id           AUTO_ID,
  project_id   BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  package_type TEXT NOT NULL,
  name_pattern TEXT NOT NULL,
  push_level   BIGINT, -- NULL: no rule; 60 is an administrator
  delete_level BIGINT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX package_protection_rules_project_id_package_type_name_pattern ON package_protection_rules (project_id, package_type, name_pattern);

-- How many files of one name a package keeps; without a row all.
CREATE TABLE package_cleanup_policies (
  project_id      BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  keep_duplicates BIGINT NOT NULL,
  next_run_at     BIGINT NOT NULL
);
CREATE INDEX package_cleanup_policies_next_run_at ON package_cleanup_policies (next_run_at);

-- Rules of a group for the packages of its projects.
CREATE TABLE package_settings (
  namespace_id               BIGINT PRIMARY KEY REFERENCES namespaces (id) ON DELETE CASCADE,
  generic_duplicates_allowed BOOLEAN NOT NULL,
  generic_duplicate_except   TEXT NOT NULL -- a regular expression of names
);
