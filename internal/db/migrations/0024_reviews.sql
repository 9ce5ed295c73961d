-- +goose Up

-- Comments on merge requests that only their author sees until the review is
-- published.
CREATE TABLE draft_notes (
  id                 AUTO_ID,
  merge_request_id   BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  author_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  discussion_id      TEXT NOT NULL DEFAULT '', -- the thread that it replies to
  resolve_discussion BOOLEAN NOT NULL DEFAULT FALSE,
  commit_sha         TEXT NOT NULL DEFAULT '',
  position           TEXT NOT NULL DEFAULT '', -- JSON: where in a diff
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL,
  body               TEXT NOT NULL
);
CREATE INDEX draft_notes_merge_request_id ON draft_notes (merge_request_id, author_id, id);
CREATE INDEX draft_notes_author_id ON draft_notes (author_id);

-- Changes that diff notes suggest: lines of the new file, and their replacement.
CREATE TABLE suggestions (
  id           AUTO_ID,
  note_id      BIGINT NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
  number       BIGINT NOT NULL, -- in the note, from 0
  from_line    BIGINT NOT NULL,
  to_line      BIGINT NOT NULL,
  from_content TEXT NOT NULL,
  to_content   TEXT NOT NULL,
  commit_sha   TEXT NOT NULL DEFAULT '', -- that applied it; empty: not applied
  applied_at   BIGINT
);
CREATE UNIQUE INDEX suggestions_note_id_number ON suggestions (note_id, number);

-- Reviewers who requested changes. A merge request with a row that is not
-- bypassed cannot be merged.
CREATE TABLE merge_request_change_requests (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at       BIGINT NOT NULL,
  bypassed         BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (merge_request_id, user_id)
);
CREATE INDEX merge_request_change_requests_user_id ON merge_request_change_requests (user_id);

ALTER TABLE notes ADD COLUMN commit_sha TEXT NOT NULL DEFAULT ''; -- the commit that the author looked at
