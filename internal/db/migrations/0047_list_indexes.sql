-- +goose Up

-- Each order of the lists of a project has an index, and each condition that selects
-- few rows: a list reads either its order or its rarest condition. Columns that can be
-- empty are sorted as the queries write them.
CREATE INDEX issues_project_id_title ON issues (project_id, title, id);
CREATE INDEX issues_project_id_due_date ON issues (project_id, COALESCE(due_date, '9999'), id);
CREATE INDEX issues_project_id_weight ON issues (project_id, COALESCE(weight, -1), id);
CREATE INDEX issues_project_id_position ON issues (project_id, (CASE WHEN position = 0 THEN iid * 1000000 ELSE position END), id);
CREATE INDEX issues_project_id_author_id ON issues (project_id, author_id, id);
CREATE INDEX issues_project_id_milestone_id ON issues (project_id, milestone_id, id);
CREATE INDEX issues_updated_at ON issues (updated_at, id);
CREATE INDEX issues_confidential ON issues (project_id, created_at, id) WHERE confidential;
CREATE INDEX issues_type ON issues (project_id, type, id) WHERE type <> 'issue';
DROP INDEX issues_milestone_id;
CREATE INDEX issues_milestone_id ON issues (milestone_id, id);

CREATE INDEX merge_requests_project_id_title ON merge_requests (project_id, title, id);
CREATE INDEX merge_requests_project_id_merged_at ON merge_requests (project_id, COALESCE(merged_at, 0), id);
CREATE INDEX merge_requests_project_id_author_id ON merge_requests (project_id, author_id, id);
CREATE INDEX merge_requests_project_id_milestone_id ON merge_requests (project_id, milestone_id, id);
CREATE INDEX merge_requests_project_id_source_branch ON merge_requests (project_id, source_branch, id);
CREATE INDEX merge_requests_project_id_target_branch ON merge_requests (project_id, target_branch, id);
CREATE INDEX merge_requests_updated_at ON merge_requests (updated_at, id);
CREATE INDEX merge_requests_draft ON merge_requests (project_id, created_at, id) WHERE draft;
DROP INDEX merge_requests_milestone_id;
CREATE INDEX merge_requests_milestone_id ON merge_requests (milestone_id, id);
DROP INDEX merge_requests_merged_by_id;
CREATE INDEX merge_requests_merged_by_id ON merge_requests (merged_by_id, id) WHERE merged_by_id IS NOT NULL;

-- Names in filters are looked up first.
CREATE INDEX labels_name ON labels (name);
CREATE INDEX milestones_title ON milestones (title);
