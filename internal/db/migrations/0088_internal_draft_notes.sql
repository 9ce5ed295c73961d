-- +goose Up
-- oldest: 0060

-- Whether a draft note replies to an internal thread.
ALTER TABLE draft_notes ADD COLUMN internal BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE draft_notes SET internal = TRUE WHERE discussion_id <> '' AND EXISTS (
  SELECT 1 FROM notes n WHERE n.noteable_type = 'MergeRequest' AND n.noteable_id = draft_notes.merge_request_id AND n.discussion_id = draft_notes.discussion_id AND n.internal);
