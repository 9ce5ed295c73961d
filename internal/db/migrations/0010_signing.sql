-- +goose Up

-- The keys with which tokens are signed that others check. Each is sealed under
-- the instance key; the newest signs.
CREATE TABLE signing_keys (
  id         AUTO_ID,
  kid        TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX signing_keys_kid ON signing_keys (kid);

-- Registration tokens are shown to those who may register runners.
ALTER TABLE runner_registration_tokens ADD COLUMN sealed TEXT NOT NULL DEFAULT '';
