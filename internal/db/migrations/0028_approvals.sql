-- +goose Up

-- Approval rules of projects, and those of merge requests, which replace them.
-- Rules of the type code_owner are made from the file CODEOWNERS.
CREATE TABLE approval_rules (
  id                 AUTO_ID,
  project_id         BIGINT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  merge_request_id   BIGINT REFERENCES merge_requests (id) ON DELETE CASCADE, -- NULL: a rule of the project
  source_rule_id     BIGINT REFERENCES approval_rules (id) ON DELETE SET NULL, -- the rule of the project that it was copied from
  type               TEXT NOT NULL, -- any_approver, regular or code_owner
  name               TEXT NOT NULL,
  section            TEXT NOT NULL DEFAULT '', -- of a code_owner rule
  roles              TEXT NOT NULL DEFAULT '', -- access levels of direct members who are code owners, separated by commas
  approvals_required BIGINT NOT NULL,
  all_protected      BOOLEAN NOT NULL DEFAULT FALSE, -- for all protected branches
  created_at         BIGINT NOT NULL
);
CREATE INDEX approval_rules_project_id ON approval_rules (project_id, id) WHERE merge_request_id IS NULL;
CREATE UNIQUE INDEX approval_rules_project_id_name ON approval_rules (project_id, name) WHERE merge_request_id IS NULL;
CREATE INDEX approval_rules_merge_request_id ON approval_rules (merge_request_id, id) WHERE merge_request_id IS NOT NULL;
CREATE INDEX approval_rules_source_rule_id ON approval_rules (source_rule_id) WHERE source_rule_id IS NOT NULL;

CREATE TABLE approval_rule_users (
  approval_rule_id BIGINT NOT NULL REFERENCES approval_rules (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  PRIMARY KEY (approval_rule_id, user_id)
) BY_KEY;
CREATE INDEX approval_rule_users_user_id ON approval_rule_users (user_id, approval_rule_id);

CREATE TABLE approval_rule_groups (
  approval_rule_id BIGINT NOT NULL REFERENCES approval_rules (id) ON DELETE CASCADE,
  group_id         BIGINT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
  PRIMARY KEY (approval_rule_id, group_id)
) BY_KEY;
CREATE INDEX approval_rule_groups_group_id ON approval_rule_groups (group_id);

-- The protected branches that a rule of a project is limited to.
CREATE TABLE approval_rule_branches (
  approval_rule_id BIGINT NOT NULL REFERENCES approval_rules (id) ON DELETE CASCADE,
  protected_ref_id BIGINT NOT NULL REFERENCES protected_refs (id) ON DELETE CASCADE,
  PRIMARY KEY (approval_rule_id, protected_ref_id)
) BY_KEY;
CREATE INDEX approval_rule_branches_protected_ref_id ON approval_rule_branches (protected_ref_id);

CREATE TABLE approvals (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  head_sha         TEXT NOT NULL, -- of the merge request when it was approved
  created_at       BIGINT NOT NULL,
  PRIMARY KEY (merge_request_id, user_id)
) BY_KEY;
CREATE INDEX approvals_user_id ON approvals (user_id, merge_request_id);

-- What the code_owner rules of a merge request were made from.
CREATE TABLE merge_request_owners (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  version_id       BIGINT NOT NULL,
  file             TEXT NOT NULL, -- the object ID of CODEOWNERS; empty: there is none
  PRIMARY KEY (merge_request_id)
) BY_KEY;

-- The users who committed to the newest version of a merge request.
CREATE TABLE merge_request_committers (
  merge_request_id BIGINT NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
  user_id          BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  PRIMARY KEY (merge_request_id, user_id)
) BY_KEY;
CREATE INDEX merge_request_committers_user_id ON merge_request_committers (user_id);
