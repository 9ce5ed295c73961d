-- +goose Up

-- What a letter to a user lets its reader do, once: set a new password, or
-- unlock the account. Addresses are confirmed by emails.confirmation_digest.
CREATE TABLE user_tickets (
  digest     TEXT PRIMARY KEY,
  user_id    BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  purpose    TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX user_tickets_user_id ON user_tickets (user_id, purpose);
CREATE INDEX user_tickets_created_at ON user_tickets (created_at);
