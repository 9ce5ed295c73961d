-- +goose Up
-- oldest: 0060

-- The last successful deployment of an environment.
CREATE INDEX CONCURRENTLY deployments_environment_id_status ON deployments (environment_id, status, id);
CREATE INDEX CONCURRENTLY deployments_project_id_updated_at ON deployments (project_id, updated_at, id);
