-- +goose Up

-- Who may know of an event (a bit of activity.Audience), and the thing that it
-- is about in the end: for a comment on an issue, that issue. Events so far are
-- pushes, which concern those who read the code.
ALTER TABLE activity_events ADD COLUMN audience BIGINT NOT NULL DEFAULT 2;
ALTER TABLE activity_events ADD COLUMN subject_type TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_events ADD COLUMN subject_id BIGINT;

-- A page of events is read from the indexes of the projects that it shows; a
-- range of days is a range of them.
DROP INDEX activity_events_project_id;
DROP INDEX activity_events_author_id;
CREATE INDEX activity_events_project_id ON activity_events (project_id, created_at, id, audience);
CREATE INDEX activity_events_author_id ON activity_events (author_id, project_id, created_at, id, audience);
CREATE INDEX activity_events_subject ON activity_events (subject_type, subject_id) WHERE subject_id IS NOT NULL;
