-- +goose Up
-- oldest: 0060

-- Imports of groups and projects from other servers, by their API. The token is
-- removed when the import ends.
CREATE TABLE bulk_imports (
  id           AUTO_ID,
  user_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  source_url   TEXT NOT NULL,
  token        TEXT NOT NULL, -- sealed
  state        TEXT NOT NULL, -- created, started, finished, failed or canceled
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX bulk_imports_user_id ON bulk_imports (user_id, id);
CREATE INDEX bulk_imports_updated_at ON bulk_imports (updated_at);

-- The groups and projects of an import. Those of a group are added when it is there.
CREATE TABLE bulk_import_entities (
  id             AUTO_ID,
  bulk_import_id BIGINT NOT NULL REFERENCES bulk_imports (id) ON DELETE CASCADE,
  parent_id      BIGINT REFERENCES bulk_import_entities (id) ON DELETE CASCADE, -- the group of a project
  kind           TEXT NOT NULL, -- group or project
  source_path    TEXT NOT NULL,
  slug           TEXT NOT NULL,
  namespace      TEXT NOT NULL, -- full path; empty at the top
  projects       BOOLEAN NOT NULL, -- of a group: with its projects
  members        BOOLEAN NOT NULL,
  state          TEXT NOT NULL, -- created, started, finished, failed or canceled
  phase          TEXT NOT NULL DEFAULT '', -- the step that is being read; importing
  steps          BIGINT NOT NULL DEFAULT 0, -- that were read, and whose files are stored
  total          BIGINT NOT NULL DEFAULT 0, -- steps
  tries          BIGINT NOT NULL DEFAULT 0, -- since a step was read
  files          BOOLEAN NOT NULL DEFAULT FALSE, -- there may be stored files
  import_id      BIGINT, -- in group_imports or project_file_imports
  namespace_id   BIGINT, -- the group, once it is there
  project_id     BIGINT, -- the project, once it is there
  failures       BIGINT NOT NULL DEFAULT 0,
  stats          TEXT NOT NULL DEFAULT '{}', -- JSON: numbers by relation
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL
);
CREATE INDEX bulk_import_entities_bulk_import_id ON bulk_import_entities (bulk_import_id, id);
CREATE INDEX bulk_import_entities_parent_id ON bulk_import_entities (parent_id);
CREATE INDEX bulk_import_entities_import_id ON bulk_import_entities (kind, import_id);
CREATE INDEX bulk_import_entities_files ON bulk_import_entities (id) WHERE files;

-- What was not carried over, up to a limit for each entity.
CREATE TABLE bulk_import_failures (
  id           AUTO_ID,
  entity_id    BIGINT NOT NULL REFERENCES bulk_import_entities (id) ON DELETE CASCADE,
  relation     TEXT NOT NULL,
  title        TEXT NOT NULL,
  path         TEXT NOT NULL, -- of the page, below the URL of the source
  message      TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX bulk_import_failures_entity_id ON bulk_import_failures (entity_id, id);
