-- +goose Up

-- Like projects.read_only: nobody writes to it while it is moved.
ALTER TABLE annexes ADD COLUMN read_only BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX annexes_storage_id ON annexes (storage, id);

-- Repositories that go from one storage to another. The owner is named and not
-- referred to: of one that is deleted meanwhile there are files to be removed.
CREATE TABLE storage_moves (
  id          AUTO_ID,
  kind        TEXT NOT NULL, -- project, snippet or group
  owner_id    BIGINT NOT NULL,
  source      TEXT NOT NULL,
  destination TEXT NOT NULL,
  state       TEXT NOT NULL,
  error       TEXT NOT NULL DEFAULT '',
  run         TEXT NOT NULL DEFAULT '',   -- tells the one who works on it from one who did
  tries       BIGINT NOT NULL DEFAULT 0,
  left_behind TEXT NOT NULL DEFAULT '[]', -- JSON: what is to be removed in the end: copies, and after the switch the originals
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  started_at  BIGINT,
  ended_at    BIGINT
);
CREATE INDEX storage_moves_kind_id ON storage_moves (kind, id);
CREATE INDEX storage_moves_owner ON storage_moves (kind, owner_id, id);
CREATE INDEX storage_moves_state ON storage_moves (state, id);
-- A thing goes one way at a time, and what it left is removed before it may
-- come back.
CREATE UNIQUE INDEX storage_moves_kind_owner_id ON storage_moves (kind, owner_id) WHERE state IN ('initial', 'scheduled', 'started', 'replicated');

-- The nodes on which nobody reads any more what a move left behind.
CREATE TABLE storage_move_nodes (
  move_id BIGINT NOT NULL REFERENCES storage_moves (id) ON DELETE CASCADE,
  node    TEXT NOT NULL,
  PRIMARY KEY (move_id, node)
);
