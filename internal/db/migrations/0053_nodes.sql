-- +goose Up

-- The nodes of the instance, as they last reported themselves. On SQLite there is
-- one, which is not stored.
CREATE TABLE nodes (
  name       TEXT PRIMARY KEY,
  version    TEXT NOT NULL,
  revision   TEXT NOT NULL,
  schema_version BIGINT NOT NULL,
  stopping   BOOLEAN NOT NULL,
  requests   DOUBLE PRECISION NOT NULL, -- per second
  latency    DOUBLE PRECISION NOT NULL, -- seconds, 95th percentile
  memory     BIGINT NOT NULL,           -- bytes
  polls      BIGINT NOT NULL,           -- held requests of runners
  started_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL
);
