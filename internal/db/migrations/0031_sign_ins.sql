-- +goose Up

-- The latest sign-ins of users.
CREATE TABLE sign_ins (
  id         AUTO_ID,
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  ip         TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX sign_ins_user_id ON sign_ins (user_id, id);
