-- +goose Up
-- oldest: 0066

-- Lists of a milestone, or by the due date of milestones, read one state.
CREATE INDEX CONCURRENTLY issues_milestone_id_state ON issues (milestone_id, state, id);
CREATE INDEX CONCURRENTLY issues_project_id_milestone_id_state ON issues (project_id, milestone_id, state, id);
CREATE INDEX CONCURRENTLY merge_requests_milestone_id_state ON merge_requests (milestone_id, state, id);
CREATE INDEX CONCURRENTLY merge_requests_project_id_milestone_id_state ON merge_requests (project_id, milestone_id, state, id);

-- The opened ones are few in an old project, and in many orders the last.
CREATE INDEX CONCURRENTLY issues_opened_updated_at ON issues (project_id, updated_at, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY issues_opened_title ON issues (project_id, title, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY issues_opened_due_date ON issues (project_id, COALESCE(due_date, '9999'), id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY issues_opened_weight ON issues (project_id, COALESCE(weight, -1), id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY issues_opened_upvotes ON issues (project_id, upvotes, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY issues_opened_position ON issues (project_id, (CASE WHEN position = 0 THEN iid * 1000000 ELSE position END), id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_opened_updated_at ON merge_requests (project_id, updated_at, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_opened_title ON merge_requests (project_id, title, id) WHERE state = 'opened';
CREATE INDEX CONCURRENTLY merge_requests_opened_upvotes ON merge_requests (project_id, upvotes, id) WHERE state = 'opened';
