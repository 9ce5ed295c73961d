-- +goose Up

-- Files of merge requests that users have marked as viewed. file is the SHA-1 of
-- the path, content identifies the two sides of its diff at that time.
CREATE TABLE merge_request_viewed_files (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  file             TEXT NOT NULL,
  content          TEXT NOT NULL,
  PRIMARY KEY (merge_request_id, user_id, file)
) BY_KEY;
CREATE INDEX merge_request_viewed_files_user ON merge_request_viewed_files (user_id);
