-- +goose Up
-- oldest: 0053

-- The code search index of a project: which commit of which branch it has, and the
-- names of its files. A project whose repository is empty has no files.
CREATE TABLE code_indexes (
  project_id    BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  format        BIGINT NOT NULL,
  branch        TEXT NOT NULL,
  commit_id     TEXT NOT NULL, -- empty: there is nothing to index
  shards        TEXT NOT NULL, -- names with a space between them
  partial       BOOLEAN NOT NULL, -- the content of some text files is left out
  files         BIGINT NOT NULL,
  content_bytes BIGINT NOT NULL,
  index_bytes   BIGINT NOT NULL,
  duration      BIGINT NOT NULL, -- of the build, in microseconds
  indexed_at    BIGINT NOT NULL
);
