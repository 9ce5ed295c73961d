-- +goose Up

-- Domains of their own on which sites are shown.
CREATE TABLE pages_domains (
  id                 AUTO_ID,
  project_id         BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  domain             TEXT NOT NULL,                -- in ASCII and lower case
  auto_ssl           BOOLEAN NOT NULL DEFAULT FALSE,
  auto_ssl_error     TEXT NOT NULL DEFAULT '',     -- why no certificate could be had
  certificate        TEXT NOT NULL DEFAULT '',     -- PEM, with intermediates
  private_key        TEXT NOT NULL DEFAULT '',     -- sealed under the instance key
  certificate_source TEXT NOT NULL DEFAULT '',     -- user or acme
  expires_at         BIGINT,                       -- of the certificate
  renew_at           BIGINT,                       -- when an automatic one is to be had next; NULL: now
  verification_code  TEXT NOT NULL,
  verified_at        BIGINT,
  enabled_until      BIGINT,                       -- unless it is verified anew
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX pages_domains_domain ON pages_domains (domain);
CREATE INDEX pages_domains_project_id ON pages_domains (project_id, id);
CREATE INDEX pages_domains_auto_ssl ON pages_domains (id) WHERE auto_ssl;

-- How the sites of a project are shown; without a row as usual.
CREATE TABLE pages_projects (
  project_id     BIGINT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  https_only     BOOLEAN NOT NULL DEFAULT TRUE,
  unique_label   TEXT NOT NULL DEFAULT '',  -- of a host of its own, kept when that is turned off
  unique_domain  BOOLEAN NOT NULL DEFAULT FALSE,
  primary_domain TEXT NOT NULL DEFAULT '',
  failure        TEXT NOT NULL DEFAULT '',  -- why the last job could not publish
  failed_job_id  BIGINT,
  failed_at      BIGINT
);
CREATE UNIQUE INDEX pages_projects_unique_label ON pages_projects (unique_label) WHERE unique_label <> '';

-- What is published: the row of a site names the archive that is shown now.
CREATE TABLE pages_sites (
  id         AUTO_ID,
  project_id BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  prefix     TEXT NOT NULL DEFAULT '',  -- below the address of the project
  job_id     BIGINT NOT NULL,
  root       TEXT NOT NULL,             -- the directory of the artifacts
  blob       TEXT NOT NULL,
  files      BIGINT NOT NULL,
  size       BIGINT NOT NULL,           -- of the files
  expires_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX pages_sites_project_id_prefix ON pages_sites (project_id, prefix);
CREATE INDEX pages_sites_expires_at ON pages_sites (expires_at) WHERE expires_at IS NOT NULL;

-- Archives that no site shows: being written, or to be removed.
CREATE TABLE pages_leftovers (
  blob       TEXT PRIMARY KEY,
  remove_at  BIGINT NOT NULL
);
CREATE INDEX pages_leftovers_remove_at ON pages_leftovers (remove_at);

-- What the ACME client keeps: accounts, challenges, certificates. Sealed.
CREATE TABLE pages_acme (
  id         AUTO_ID,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  size       BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX pages_acme_name ON pages_acme (name);
CREATE TABLE pages_acme_locks (
  name       TEXT PRIMARY KEY,
  holder     TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
