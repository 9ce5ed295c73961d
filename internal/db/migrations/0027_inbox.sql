-- +goose Up

-- To-do items: what asks for the attention of a user. Each is about an issue or
-- a merge request.
CREATE TABLE todos (
  id               AUTO_ID,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  author_id        BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  project_id       BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  issue_id         BIGINT REFERENCES issues (id) ON DELETE CASCADE, -- one of these two is set
  merge_request_id BIGINT REFERENCES merge_requests (id) ON DELETE CASCADE,
  note_id          BIGINT REFERENCES notes (id) ON DELETE CASCADE, -- the comment that mentions the user
  action           TEXT NOT NULL, -- assigned, mentioned …
  state            TEXT NOT NULL DEFAULT 'pending', -- or done
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL
);
CREATE INDEX todos_user_id ON todos (user_id, state, id);
CREATE INDEX todos_user_id_project_id ON todos (user_id, state, project_id, id);
-- A user has at most one pending item for a target.
CREATE UNIQUE INDEX todos_issue_id_user_id ON todos (issue_id, user_id) WHERE state = 'pending' AND issue_id IS NOT NULL;
CREATE UNIQUE INDEX todos_merge_request_id_user_id ON todos (merge_request_id, user_id) WHERE state = 'pending' AND merge_request_id IS NOT NULL;
CREATE INDEX todos_issue_id ON todos (issue_id) WHERE issue_id IS NOT NULL;
CREATE INDEX todos_merge_request_id ON todos (merge_request_id) WHERE merge_request_id IS NOT NULL;
CREATE INDEX todos_note_id ON todos (note_id) WHERE note_id IS NOT NULL;
CREATE INDEX todos_author_id ON todos (author_id);
CREATE INDEX todos_project_id ON todos (project_id);

-- Emoji reactions. One of the four objects is set.
CREATE TABLE award_emoji (
  id               AUTO_ID,
  name             TEXT NOT NULL,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  issue_id         BIGINT REFERENCES issues (id) ON DELETE CASCADE,
  merge_request_id BIGINT REFERENCES merge_requests (id) ON DELETE CASCADE,
  snippet_id       BIGINT REFERENCES snippets (id) ON DELETE CASCADE,
  note_id          BIGINT REFERENCES notes (id) ON DELETE CASCADE,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX award_emoji_issue_id_name_user_id ON award_emoji (issue_id, name, user_id) WHERE issue_id IS NOT NULL;
CREATE UNIQUE INDEX award_emoji_merge_request_id_name_user_id ON award_emoji (merge_request_id, name, user_id) WHERE merge_request_id IS NOT NULL;
CREATE UNIQUE INDEX award_emoji_snippet_id_name_user_id ON award_emoji (snippet_id, name, user_id) WHERE snippet_id IS NOT NULL;
CREATE UNIQUE INDEX award_emoji_note_id_name_user_id ON award_emoji (note_id, name, user_id) WHERE note_id IS NOT NULL;
CREATE INDEX award_emoji_user_id ON award_emoji (user_id, name);

-- The number of thumbsup and thumbsdown reactions.
ALTER TABLE issues ADD COLUMN upvotes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE issues ADD COLUMN downvotes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merge_requests ADD COLUMN upvotes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merge_requests ADD COLUMN downvotes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX issues_project_id_upvotes ON issues (project_id, upvotes, id);
CREATE INDEX merge_requests_project_id_upvotes ON merge_requests (project_id, upvotes, id);

-- What a user prefers: time zone, diff view … JSON, empty for the defaults.
ALTER TABLE users ADD COLUMN preferences TEXT NOT NULL DEFAULT '';
