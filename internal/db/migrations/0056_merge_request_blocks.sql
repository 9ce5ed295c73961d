-- +goose Up
-- oldest: 0053

-- Dependencies of merge requests: the blocked one cannot be merged before the
-- blocking one is.
CREATE TABLE merge_request_blocks (
  id          AUTO_ID,
  blocked_id  BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  blocking_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX merge_request_blocks_blocked_id_blocking_id ON merge_request_blocks (blocked_id, blocking_id);
CREATE INDEX merge_request_blocks_blocking_id ON merge_request_blocks (blocking_id, id);
