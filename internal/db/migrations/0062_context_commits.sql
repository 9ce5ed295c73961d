-- +goose Up
-- oldest: 0060

-- Commits of the target project that were added to a merge request for context.
CREATE TABLE merge_request_context_commits (
  id               AUTO_ID,
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  sha              TEXT NOT NULL,
  created_at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX merge_request_context_commits_merge_request_id_sha ON merge_request_context_commits (merge_request_id, sha);
