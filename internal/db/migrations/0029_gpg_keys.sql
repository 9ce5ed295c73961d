-- +goose Up

-- OpenPGP public keys of users. They verify signatures of commits and tags.
CREATE TABLE gpg_keys (
  id          AUTO_ID,
  user_id     BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX gpg_keys_fingerprint ON gpg_keys (fingerprint);
CREATE INDEX gpg_keys_user_id ON gpg_keys (user_id, id);

-- The primary key and the subkeys of each key: signatures name the one that made
-- them by its fingerprint or by its key ID.
CREATE TABLE gpg_key_parts (
  id          AUTO_ID,
  gpg_key_id  BIGINT NOT NULL REFERENCES gpg_keys (id) ON DELETE CASCADE,
  fingerprint TEXT NOT NULL,
  key_id      TEXT NOT NULL
);
CREATE INDEX gpg_key_parts_fingerprint ON gpg_key_parts (fingerprint);
CREATE INDEX gpg_key_parts_key_id ON gpg_key_parts (key_id);
CREATE INDEX gpg_key_parts_gpg_key_id ON gpg_key_parts (gpg_key_id);
