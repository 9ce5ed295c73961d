-- +goose Up
-- oldest: 0060

-- Lists of the releases of a group start with the newest ones of the instance.
CREATE INDEX CONCURRENTLY releases_released_at ON releases (released_at, id);
-- Filters that match few rows.
CREATE INDEX CONCURRENTLY audit_events_entity_type ON audit_events (entity_type, id);
CREATE INDEX CONCURRENTLY audit_events_entity_created_at ON audit_events (entity_type, entity_id, created_at, id);
CREATE INDEX CONCURRENTLY audit_events_entity_author ON audit_events (entity_type, entity_id, author_id, id);
CREATE INDEX CONCURRENTLY bulk_imports_state ON bulk_imports (state, id);
CREATE INDEX CONCURRENTLY bulk_imports_user_id_state ON bulk_imports (user_id, state, id);
CREATE INDEX CONCURRENTLY bulk_import_entities_state ON bulk_import_entities (state, id);
CREATE INDEX CONCURRENTLY bulk_import_entities_bulk_import_id_state ON bulk_import_entities (bulk_import_id, state, id);
CREATE INDEX CONCURRENTLY deployments_project_id_status ON deployments (project_id, status, id);
CREATE INDEX CONCURRENTLY environments_project_id ON environments (project_id, id);
CREATE INDEX CONCURRENTLY environments_project_id_state ON environments (project_id, state, id);
-- The last successful pipeline of a ref that has failed ever since.
CREATE INDEX CONCURRENTLY pipelines_success ON pipelines (project_id, ref, tag, id) WHERE status = 'success' AND NOT child;
CREATE INDEX CONCURRENTLY merge_requests_waiting ON merge_requests (head_sha, id) WHERE auto_merge_by_id IS NOT NULL AND state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_collaborations ON merge_requests (source_project_id, id) WHERE allow_collaboration AND state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_source_iid ON merge_requests (source_project_id, iid);
