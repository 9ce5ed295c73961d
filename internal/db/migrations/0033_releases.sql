-- +goose Up

-- Who reads the releases of a project, as in its settings: lists of groups
-- need it in a condition.
ALTER TABLE projects ADD COLUMN releases_access_level TEXT NOT NULL DEFAULT 'enabled';
UPDATE projects SET releases_access_level = 'disabled' WHERE settings LIKE '%"Releases":"disabled"%';
UPDATE projects SET releases_access_level = 'private' WHERE settings LIKE '%"Releases":"private"%';

CREATE TABLE releases (
  id          AUTO_ID,
  project_id  BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  tag         TEXT NOT NULL,
  name        TEXT NOT NULL,
  sha         TEXT NOT NULL, -- the commit of the tag when the release was created
  author_id   BIGINT REFERENCES users (id) ON DELETE SET NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  released_at BIGINT NOT NULL,
  description TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX releases_project_id_tag ON releases (project_id, tag);
CREATE INDEX releases_project_id_released_at ON releases (project_id, released_at, id);
CREATE INDEX releases_project_id_created_at ON releases (project_id, created_at, id);
CREATE INDEX releases_author_id ON releases (author_id) WHERE author_id IS NOT NULL;

CREATE TABLE release_links (
  id         AUTO_ID,
  release_id BIGINT NOT NULL REFERENCES releases (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  url        TEXT NOT NULL,
  filepath   TEXT, -- of the permanent URL; NULL: there is none
  link_type  TEXT NOT NULL DEFAULT 'other', -- runbook, image, package or other
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX release_links_release_id_name ON release_links (release_id, name);
CREATE UNIQUE INDEX release_links_release_id_url ON release_links (release_id, url);
CREATE UNIQUE INDEX release_links_release_id_filepath ON release_links (release_id, filepath) WHERE filepath IS NOT NULL;

CREATE TABLE release_milestones (
  release_id   BIGINT NOT NULL REFERENCES releases (id) ON DELETE CASCADE,
  milestone_id BIGINT NOT NULL REFERENCES milestones (id) ON DELETE CASCADE,
  PRIMARY KEY (release_id, milestone_id)
) BY_KEY;
CREATE INDEX release_milestones_milestone_id ON release_milestones (milestone_id);
