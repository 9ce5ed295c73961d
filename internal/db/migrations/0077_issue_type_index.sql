-- +goose Up
-- oldest: 0060

-- The issues of a project of a rare type, as lists sort them by default.
CREATE INDEX CONCURRENTLY issues_type_created_at ON issues (project_id, type, created_at, id) WHERE type <> 'issue';
