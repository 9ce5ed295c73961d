-- +goose Up

-- Protected branches of groups: one of project_id and namespace_id is set. The
-- table is copied, because SQLite cannot make a column nullable, and so are the
-- tables that refer to it: their rows would go with the old table.
CREATE TABLE protected_refs_copy (
  id                  AUTO_ID,
  project_id          BIGINT REFERENCES projects (id) ON DELETE CASCADE,
  namespace_id        BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  kind                TEXT NOT NULL, -- branch or tag
  name                TEXT NOT NULL,
  allow_force_push    BOOLEAN NOT NULL DEFAULT FALSE,
  code_owner_approval BOOLEAN NOT NULL DEFAULT FALSE,
  created_at          BIGINT NOT NULL
);
INSERT INTO protected_refs_copy (id, project_id, kind, name, allow_force_push, code_owner_approval, created_at)
SELECT id, project_id, kind, name, allow_force_push, code_owner_approval, created_at FROM protected_refs ORDER BY id;

CREATE TABLE protected_ref_access_copy (
  id               AUTO_ID,
  protected_ref_id BIGINT NOT NULL REFERENCES protected_refs_copy (id) ON DELETE CASCADE,
  action           TEXT NOT NULL, -- push, merge, unprotect or create
  access_level     BIGINT NOT NULL,
  user_id          BIGINT REFERENCES users (id) ON DELETE CASCADE,
  group_id         BIGINT REFERENCES namespaces (id) ON DELETE CASCADE,
  deploy_key_id    BIGINT REFERENCES deploy_keys (id) ON DELETE CASCADE
);
INSERT INTO protected_ref_access_copy (id, protected_ref_id, action, access_level, user_id, group_id, deploy_key_id)
SELECT id, protected_ref_id, action, access_level, user_id, group_id, deploy_key_id FROM protected_ref_access ORDER BY id;

CREATE TABLE approval_rule_branches_copy (
  approval_rule_id BIGINT NOT NULL REFERENCES approval_rules (id) ON DELETE CASCADE,
  protected_ref_id BIGINT NOT NULL REFERENCES protected_refs_copy (id) ON DELETE CASCADE,
  PRIMARY KEY (approval_rule_id, protected_ref_id)
) BY_KEY;
INSERT INTO approval_rule_branches_copy (approval_rule_id, protected_ref_id)
SELECT approval_rule_id, protected_ref_id FROM approval_rule_branches;

DROP TABLE approval_rule_branches;
DROP TABLE protected_ref_access;
DROP TABLE protected_refs;
ALTER TABLE protected_refs_copy RENAME TO protected_refs;
ALTER TABLE protected_ref_access_copy RENAME TO protected_ref_access;
ALTER TABLE approval_rule_branches_copy RENAME TO approval_rule_branches;

CREATE UNIQUE INDEX protected_refs_project_id_kind_name ON protected_refs (project_id, kind, name);
CREATE UNIQUE INDEX protected_refs_namespace_id_kind_name ON protected_refs (namespace_id, kind, name) WHERE namespace_id IS NOT NULL;
CREATE INDEX protected_ref_access_protected_ref_id ON protected_ref_access (protected_ref_id, id);
CREATE INDEX protected_ref_access_user_id ON protected_ref_access (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_ref_access_group_id ON protected_ref_access (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX protected_ref_access_deploy_key_id ON protected_ref_access (deploy_key_id) WHERE deploy_key_id IS NOT NULL;
CREATE INDEX approval_rule_branches_protected_ref_id ON approval_rule_branches (protected_ref_id);
