-- +goose Up

-- Exports of groups. The file of one lies in the blob store until it expires, or
-- until its group is gone.
CREATE TABLE group_exports (
  id           AUTO_ID,
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE SET NULL,
  user_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  state        TEXT NOT NULL, -- queued, started, finished or failed
  tries        BIGINT NOT NULL DEFAULT 0,
  done         BIGINT NOT NULL DEFAULT 0, -- rows, of
  total        BIGINT NOT NULL DEFAULT 0,
  size         BIGINT NOT NULL DEFAULT 0, -- bytes
  error        TEXT NOT NULL DEFAULT '',
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT,
  expires_at   BIGINT -- when the file goes, or what is left of one that failed
);
CREATE INDEX group_exports_namespace_id ON group_exports (namespace_id, id);
CREATE INDEX group_exports_user_id ON group_exports (user_id);
CREATE INDEX group_exports_expires_at ON group_exports (expires_at) WHERE expires_at IS NOT NULL;

-- Imports of groups. Until one is finished its group is hidden.
CREATE TABLE group_imports (
  id           AUTO_ID,
  user_id      BIGINT REFERENCES users (id) ON DELETE SET NULL,
  name         TEXT NOT NULL,
  path         TEXT NOT NULL,
  parent_id    BIGINT, -- null at the top; the group may have gone since
  namespace_id BIGINT REFERENCES namespaces (id) ON DELETE SET NULL,
  state        TEXT NOT NULL, -- uploading, queued, started, finished or failed
  tries        BIGINT NOT NULL DEFAULT 0,
  done         BIGINT NOT NULL DEFAULT 0, -- bytes, of
  total        BIGINT NOT NULL DEFAULT 0,
  file         TEXT NOT NULL, -- the key of what was sent; empty once that is gone
  error        TEXT NOT NULL DEFAULT '',
  report       TEXT NOT NULL DEFAULT '{}', -- JSON
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT
);
CREATE INDEX group_imports_user_id ON group_imports (user_id, id);
CREATE INDEX group_imports_namespace_id ON group_imports (namespace_id);
CREATE INDEX group_imports_file ON group_imports (id) WHERE file <> '';
CREATE INDEX group_imports_finished_at ON group_imports (finished_at) WHERE finished_at IS NOT NULL;
