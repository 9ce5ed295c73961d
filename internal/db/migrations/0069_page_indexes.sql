-- +goose Up
-- oldest: 0060

-- Lists of merge requests show the pipeline of each head, of its branch or merge
-- request: a commit can have many pipelines. The start page of merge requests has the
-- open ones of an author, who may have merged thousands, and those that were merged
-- recently.
CREATE INDEX CONCURRENTLY pipelines_project_id_sha_ref ON pipelines (project_id, sha, ref, id);
CREATE INDEX CONCURRENTLY merge_requests_author_opened ON merge_requests (author_id, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_author_merged_at ON merge_requests (author_id, merged_at) WHERE merged_at IS NOT NULL;
