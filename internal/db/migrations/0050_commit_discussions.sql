-- +goose Up

-- Threads on commits. Each comment that exists is a discussion.
ALTER TABLE commit_comments ADD COLUMN discussion_id TEXT NOT NULL DEFAULT '';
ALTER TABLE commit_comments ADD COLUMN thread BOOLEAN NOT NULL DEFAULT FALSE; -- FALSE: a single comment
ALTER TABLE commit_comments ADD COLUMN old_path TEXT NOT NULL DEFAULT ''; -- path before the commit; empty: that is path
ALTER TABLE commit_comments ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
UPDATE commit_comments SET discussion_id = printf('%040x', id), updated_at = created_at;
CREATE INDEX commit_comments_discussion_id ON commit_comments (project_id, sha, discussion_id, id);
