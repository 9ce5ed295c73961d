-- +goose Up
-- oldest: 0060

-- Storages in object stores. The owner is in the store as well, so that a copy of
-- the instance does not delete what it does not know there.
CREATE TABLE bucket_storages (
  storage TEXT PRIMARY KEY,
  owner   TEXT NOT NULL -- random
) BY_KEY;

-- Repositories of storages in an object store. Their packs are objects there, and
-- nodes have caches of them; what a repository consists of is here.
CREATE TABLE bucket_repositories (
  id              AUTO_ID,
  storage         TEXT NOT NULL,
  path            TEXT NOT NULL, -- in the storage
  head            TEXT NOT NULL, -- the default branch
  generation      BIGINT NOT NULL, -- raised by each change of refs or packs
  pack_generation BIGINT NOT NULL, -- the generation in which packs were last replaced
  ref_floor       BIGINT NOT NULL DEFAULT 0, -- deletions of refs up to this generation are forgotten
  created_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX bucket_repositories_storage_path ON bucket_repositories (storage, path);

-- Their refs. A deleted ref keeps its row for a while, without a target, so that
-- nodes can ask for what changed.
CREATE TABLE bucket_refs (
  repository_id BIGINT NOT NULL REFERENCES bucket_repositories (id) ON DELETE CASCADE,
  name          BYTES NOT NULL, -- Git allows any encoding
  target        TEXT NOT NULL,
  peeled        TEXT NOT NULL, -- what an annotated tag leads to
  generation    BIGINT NOT NULL, -- of the last change
  PRIMARY KEY (repository_id, name)
) BY_KEY;
CREATE INDEX bucket_refs_generation ON bucket_refs (repository_id, generation);

-- The updates of refs that have a mark, for a day.
CREATE TABLE bucket_ref_marks (
  mark          TEXT NOT NULL,
  name          BYTES NOT NULL,
  repository_id BIGINT NOT NULL REFERENCES bucket_repositories (id) ON DELETE CASCADE,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (mark, name)
) BY_KEY;
CREATE INDEX bucket_ref_marks_created_at ON bucket_ref_marks (created_at);
CREATE INDEX bucket_ref_marks_repository_id ON bucket_ref_marks (repository_id);

-- Their packs. One that was replaced, or whose repository was deleted, keeps its
-- row until its objects are deleted from the store.
CREATE TABLE bucket_packs (
  id            AUTO_ID,
  storage       TEXT NOT NULL,
  repository_id BIGINT NOT NULL,
  hash          TEXT NOT NULL,
  object        TEXT NOT NULL, -- the key in the store, without .pack and .idx; empty if the pack is in the row
  size          BIGINT NOT NULL, -- bytes of the pack
  index_size    BIGINT NOT NULL,
  bitmap_size   BIGINT NOT NULL DEFAULT 0, -- 0 if it has none
  pack          BYTES, -- small packs
  pack_index    BYTES,
  created_at    BIGINT NOT NULL,
  removed_at    BIGINT
);
CREATE UNIQUE INDEX bucket_packs_repository_id_hash ON bucket_packs (repository_id, hash) WHERE removed_at IS NULL;
CREATE INDEX bucket_packs_object ON bucket_packs (object) WHERE object <> '';
CREATE INDEX bucket_packs_removed_at ON bucket_packs (storage, removed_at) WHERE removed_at IS NOT NULL;
