-- +goose Up
-- oldest: 0060

-- Merge requests by the commits that they were merged with.
CREATE INDEX CONCURRENTLY merge_requests_merge_commit_sha ON merge_requests (merge_commit_sha) WHERE merge_commit_sha <> '';
CREATE INDEX CONCURRENTLY merge_requests_squash_commit_sha ON merge_requests (squash_commit_sha) WHERE squash_commit_sha <> '';
