-- +goose Up

-- Projects in the CI/CD Catalog.
CREATE TABLE catalog_resources (
  project_id  BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  created_at  BIGINT NOT NULL,
  released_at BIGINT -- of the newest version; NULL: nothing was published
);
CREATE INDEX catalog_resources_released_at ON catalog_resources (released_at, project_id) WHERE released_at IS NOT NULL;

-- Published versions: releases with a semantic version.
CREATE TABLE catalog_versions (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES catalog_resources (project_id) ON DELETE CASCADE,
  release_id BIGINT NOT NULL REFERENCES releases (id) ON DELETE CASCADE,
  version    TEXT NOT NULL,
  components TEXT NOT NULL, -- JSON: names and inputs
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX catalog_versions_release_id ON catalog_versions (release_id);
CREATE INDEX catalog_versions_project_id ON catalog_versions (project_id, id);
