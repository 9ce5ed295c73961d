-- +goose Up
-- oldest: 0053

-- The orders of lists of several projects, and of lists of a project that are read in
-- parts: by the priority of labels and by milestones.
CREATE INDEX issues_title_id ON issues (title, id);
CREATE INDEX issues_due_date_id ON issues (COALESCE(due_date, '9999'), id);
CREATE INDEX issues_weight_id ON issues (COALESCE(weight, -1), id);
CREATE INDEX issues_upvotes_id ON issues (upvotes, id);
CREATE INDEX issues_position_id ON issues ((CASE WHEN position = 0 THEN iid * 1000000 ELSE position END), id);
CREATE INDEX issues_project_id_id ON issues (project_id, id);

CREATE INDEX merge_requests_title_id ON merge_requests (title, id);
CREATE INDEX merge_requests_merged_at_id ON merge_requests (COALESCE(merged_at, 0), id);
CREATE INDEX merge_requests_upvotes_id ON merge_requests (upvotes, id);
CREATE INDEX merge_requests_project_id_id ON merge_requests (project_id, id);
