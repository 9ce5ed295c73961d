-- +goose Up
-- oldest: 0060

-- Verified answers of SAML providers, until the browser comes back for them with
-- its own cookies.
CREATE TABLE sign_in_answers (
  digest     TEXT PRIMARY KEY,
  provider   TEXT NOT NULL,
  answer     TEXT NOT NULL,
  expires_at BIGINT NOT NULL
) BY_KEY;
CREATE INDEX sign_in_answers_expires_at ON sign_in_answers (expires_at);
