-- +goose Up
-- oldest: 0060

-- For the deletion of what the rows refer to.
CREATE INDEX CONCURRENTLY commit_statuses_pipeline_id ON commit_statuses (pipeline_id) WHERE pipeline_id IS NOT NULL;
CREATE INDEX CONCURRENTLY approval_rules_project_id_merge_request_id ON approval_rules (project_id, merge_request_id);
CREATE INDEX CONCURRENTLY job_token_allowlist_target_project_id ON job_token_allowlist (target_project_id) WHERE target_project_id IS NOT NULL;
CREATE INDEX CONCURRENTLY job_token_allowlist_target_namespace_id ON job_token_allowlist (target_namespace_id) WHERE target_namespace_id IS NOT NULL;
CREATE INDEX CONCURRENTLY uploads_author_id ON uploads (author_id) WHERE author_id IS NOT NULL;
CREATE INDEX CONCURRENTLY boards_milestone_id ON boards (milestone_id) WHERE milestone_id IS NOT NULL;
CREATE INDEX CONCURRENTLY boards_assignee_id ON boards (assignee_id) WHERE assignee_id IS NOT NULL;
CREATE INDEX CONCURRENTLY board_lists_milestone_id ON board_lists (milestone_id) WHERE milestone_id IS NOT NULL;
CREATE INDEX CONCURRENTLY board_lists_assignee_id ON board_lists (assignee_id) WHERE assignee_id IS NOT NULL;
CREATE INDEX CONCURRENTLY members_created_by ON members (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX CONCURRENTLY namespaces_created_by ON namespaces (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX CONCURRENTLY deploy_tokens_created_by ON deploy_tokens (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX CONCURRENTLY deploy_keys_created_by ON deploy_keys (created_by) WHERE created_by IS NOT NULL;

-- Users of which there is one or few.
CREATE INDEX CONCURRENTLY users_ghost ON users (id) WHERE kind = 'ghost';
CREATE INDEX CONCURRENTLY users_alert_bot ON users (id) WHERE kind = 'alert_bot';

-- Snippets without files, which are deleted.
CREATE INDEX CONCURRENTLY snippets_unfinished ON snippets (created_at) WHERE files = '[]';

-- The newest pipeline of each branch and tag.
CREATE INDEX CONCURRENTLY pipelines_newest ON pipelines (project_id, tag, ref, id) WHERE NOT child;
