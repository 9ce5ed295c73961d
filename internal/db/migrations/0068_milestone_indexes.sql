-- +goose Up
-- oldest: 0067
-- phase: post

-- The indexes of 0067 replace them.
DROP INDEX issues_milestone_id;
DROP INDEX issues_project_id_milestone_id;
DROP INDEX merge_requests_milestone_id;
DROP INDEX merge_requests_project_id_milestone_id;
