package bench

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
)

// creation is a request that creates a row. A field of the response, the ID by
// default, becomes the value of the placeholder with its name.
type creation struct{ name, path, body string }

// creations create a row for most lists.
var creations = []creation{
	{"group", "groups", `{"name":"gear","path":"g","visibility":"public"}`},
	{"subgroup", "groups", `{"name":"gear","path":"gear","parent_id":{group},"visibility":"public"}`},
	{"", "groups/{group}/members", `{"user_id":{worker},"access_level":30}`},
	{"project", "projects", `{"name":"gear","path":"engine","namespace_id":{group},"visibility":"public","initialize_with_readme":true,"topics":["gear"]}`},
	{"other", "projects", `{"name":"other","path":"other","namespace_id":{group},"visibility":"public"}`},
	{"", "projects/{project}/members", `{"user_id":{worker},"access_level":40}`},
	{"topic", "topics", `{"name":"gear-train","title":"gear"}`},
	{"label", "projects/{project}/labels", `{"name":"gear","color":"#428bca"}`},
	{"", "projects/{project}/labels", `{"name":"rare","color":"#428bca"}`},
	{"group_label", "groups/{group}/labels", `{"name":"gear of group","color":"#428bca"}`},
	{"milestone", "projects/{project}/milestones", `{"title":"gear"}`},
	{"group_milestone", "groups/{group}/milestones", `{"title":"gear of group"}`},
	{"issue", "projects/{project}/issues", `{"title":"gear","labels":"gear","milestone_id":{milestone},"assignee_ids":[{worker}],"weight":3}`},
	{"issue2", "projects/{project}/issues", `{"title":"gear","milestone_id":{group_milestone}}`},
	{"issue_note", "projects/{project}/issues/1/notes", `{"body":"gear"}`},
	{"issue_discussion", "projects/{project}/issues/1/discussions", `{"body":"gear"}`},
	{"issue_reply", "projects/{project}/issues/1/discussions/{issue_discussion}/notes", `{"body":"gear"}`},
	{"", "projects/{project}/issues/1/award_emoji", `{"name":"thumbsup"}`},
	{"", "projects/{project}/issues/1/notes/{issue_note}/award_emoji", `{"name":"thumbsup"}`},
	{"sha", "projects/{project}/repository/commits", `{"branch":"feature","start_branch":"main","commit_message":"gear","actions":[{"action":"create","file_path":"a","content":"a"}]}`},
	{"", "projects/{project}/approval_rules", `{"name":"gear","approvals_required":0}`},
	{"merge_request", "projects/{project}/merge_requests", `{"title":"gear","source_branch":"feature","target_branch":"main","labels":"gear","milestone_id":{milestone},"assignee_id":{worker},"reviewer_ids":[{worker}],"description":"Closes #1"}`},
	{"merge_request_note", "projects/{project}/merge_requests/1/notes", `{"body":"gear"}`},
	{"merge_request_discussion", "projects/{project}/merge_requests/1/discussions", `{"body":"gear"}`},
	{"", "projects/{project}/merge_requests/1/draft_notes", `{"note":"gear"}`},
	{"", "projects/{project}/merge_requests/1/award_emoji", `{"name":"thumbsup"}`},
	{"", "projects/{project}/merge_requests/1/notes/{merge_request_note}/award_emoji", `{"name":"thumbsup"}`},
	{"snippet", "projects/{project}/snippets", `{"title":"gear","visibility":"public","files":[{"file_path":"a","content":"a"}]}`},
	{"personal_snippet", "snippets", `{"title":"gear","visibility":"public","files":[{"file_path":"a","content":"a"}]}`},
	{"snippet_note", "projects/{project}/snippets/{snippet}/notes", `{"body":"gear"}`},
	{"snippet_discussion", "projects/{project}/snippets/{snippet}/discussions", `{"body":"gear"}`},
	{"", "projects/{project}/snippets/{snippet}/award_emoji", `{"name":"thumbsup"}`},
	{"", "projects/{project}/snippets/{snippet}/notes/{snippet_note}/award_emoji", `{"name":"thumbsup"}`},
	{"board", "projects/{project}/boards", `{"name":"gear"}`},
	{"", "projects/{project}/boards/{board}/lists", `{"label_id":{label}}`},
	{"group_board", "groups/{group}/boards", `{"name":"gear"}`},
	{"", "groups/{group}/boards/{group_board}/lists", `{"label_id":{group_label}}`},
	{"hook", "projects/{project}/hooks", `{"url":"http://hook.example.org/"}`},
	{"group_hook", "groups/{group}/hooks", `{"url":"http://hook.example.org/"}`},
	{"system_hook", "hooks", `{"url":"http://hook.example.org/"}`},
	{"", "projects/{project}/badges", `{"name":"gear","link_url":"https://example.org","image_url":"https://example.org/i"}`},
	{"", "groups/{group}/badges", `{"name":"gear","link_url":"https://example.org","image_url":"https://example.org/i"}`},
	{"", "projects/{project}/variables", `{"key":"GEAR","value":"1"}`},
	{"", "groups/{group}/variables", `{"key":"GEAR","value":"1"}`},
	{"", "admin/ci/variables", `{"key":"GEAR","value":"1"}`},
	{"", "applications", `{"name":"gear","redirect_uri":"https://example.org","scopes":"api"}`},
	{"", "broadcast_messages", `{"message":"gear","starts_at":"2010-01-01T00:00:00Z","ends_at":"2010-02-01T00:00:00Z"}`},
	{"", "projects/{project}/deploy_tokens", `{"name":"gear","scopes":["read_repository"]}`},
	{"", "groups/{group}/deploy_tokens", `{"name":"gear","scopes":["read_repository"]}`},
	{"", "projects/{project}/invitations", `{"email":"gear@example.com","access_level":30}`},
	{"", "groups/{group}/invitations", `{"email":"gear@example.com","access_level":30}`},
	{"", "projects/{project}/access_tokens", `{"name":"gear","scopes":["api"],"access_level":30,"expires_at":"{next_month}"}`},
	{"", "groups/{group}/access_tokens", `{"name":"gear","scopes":["api"],"access_level":30,"expires_at":"{next_month}"}`},
	{"service_account", "groups/{group}/service_accounts", `{"name":"gear"}`},
	{"", "groups/{group}/service_accounts/{service_account}/personal_access_tokens", `{"name":"gear","scopes":["api"]}`},
	{"", "service_accounts", `{"name":"gear"}`},
	{"", "users/{worker}/impersonation_tokens", `{"name":"gear","scopes":["api"]}`},
	{"", "projects/{project}/protected_tags", `{"name":"gear"}`},
	{"", "projects/{project}/protected_branches", `{"name":"gear"}`},
	{"", "groups/{group}/protected_branches", `{"name":"gear"}`},
	{"", "projects/{project}/share", `{"group_id":{subgroup},"group_access":30}`},
	{"", "groups/{other_group}/share", `{"group_id":{group},"group_access":30}`},
	{"", "projects/{project}/feature_flags", `{"name":"gear","version":"new_version_flag"}`},
	{"", "projects/{project}/feature_flags_user_lists", `{"name":"gear","user_xids":"a"}`},
	{"", "projects/{project}/freeze_periods", `{"freeze_start":"0 23 * * 5","freeze_end":"0 7 * * 1"}`},
	{"", "projects/{project}/environments", `{"name":"gear"}`},
	{"deployment", "projects/{project}/deployments", `{"environment":"gear","sha":"{sha}","ref":"main","tag":false,"status":"success"}`},
	{"", "projects/{project}/protected_environments", `{"name":"gear","deploy_access_levels":[{"access_level":40}]}`},
	{"", "groups/{group}/protected_environments", `{"name":"staging","deploy_access_levels":[{"access_level":40}]}`},
	{"", "projects/{project}/statuses/{sha}", `{"state":"success","name":"gear"}`},
	{"", "projects/{project}/pipeline_schedules", `{"description":"gear","ref":"main","cron":"0 0 1 1 *","active":false}`},
	{"", "projects/{project}/triggers", `{"description":"gear"}`},
	{"", "projects/{project}/error_tracking/client_keys", `{}`},
	{"", "projects/{project}/cluster_agents", `{"name":"gear"}`},
	{"", "projects/{project}/packages/protection/rules", `{"package_name_pattern":"gear","package_type":"npm","minimum_access_level_for_push":"maintainer"}`},
	{"", "projects/{project}/releases", `{"tag_name":"v1","ref":"main","name":"gear","assets":{"links":[{"name":"gear","url":"https://example.org/gear"}]}}`},
	{"", "projects/{project}/repository/commits/{sha}/comments", `{"note":"gear"}`},
	{"commit_discussion", "projects/{project}/repository/commits/{sha}/discussions", `{"body":"gear"}`},
	{"", "project_aliases", `{"project_id":{project},"name":"gear"}`},
	{"", "projects/{project}/star", `{}`},
	{"", "users/{worker}/follow", `{}`},
	{"runner", "user/runners", `{"runner_type":"project_type","project_id":{project},"tag_list":"gear"}`},
	{"", "user/runners", `{"runner_type":"group_type","group_id":{group},"tag_list":"gear"}`},
	{"", "user/runners", `{"runner_type":"instance_type","tag_list":"gear"}`},
	{"", "projects/{project}/wikis", `{"title":"gear","content":"gear"}`},
	{"", "projects/{project}/alert_management/http_integrations", `{"name":"gear"}`},
	{"", "groups/{group}/share", `{"group_id":{other_group},"group_access":30}`},
	{"outside", "projects", `{"name":"gear","path":"outside","visibility":"public"}`},
	{"", "projects/{outside}/share", `{"group_id":{group},"group_access":30}`},
	{"", "projects/{project}/issues/1/links", `{"target_project_id":{project},"target_issue_iid":2}`},
	{"", "projects/{project}/repository/commits", `{"branch":"second","start_branch":"main","commit_message":"gear","actions":[{"action":"create","file_path":"b","content":"b"}]}`},
	{"second", "projects/{project}/merge_requests", `{"title":"gear","source_branch":"second","target_branch":"main","milestone_id":{group_milestone}}`},
	{"", "projects/{project}/merge_requests/2/blocks?blocking_merge_request_id={merge_request}", `{}`},
	{"", "projects/{project}/job_token_scope/groups_allowlist", `{"target_group_id":{other_group}}`},
	{"", "projects/{project}/job_token_scope/allowlist", `{"target_project_id":{other}}`},
	{"", "projects/{project}/repository/commits", `{"branch":"ci","start_branch":"main","commit_message":"gear","actions":[{"action":"create","file_path":".gitlab-ci.yml","content":"gear: {script: [a], resource_group: gear}\nbridge: {trigger: {project: g/other}}"}]}`},
	{"pipeline", "projects/{project}/pipeline", `{"ref":"ci","variables":[{"key":"GEAR","value":"1"}]}`},
}

// create creates the rows that are copied.
func (s *fullSite) create(b testing.TB) {
	b.Helper()
	s.values["worker"] = s.text(b, `SELECT id FROM users WHERE username = 'worker'`)
	newToken(b, s.Server, "stranger")
	s.values["stranger"] = s.text(b, `SELECT id FROM users WHERE username = 'stranger'`)
	s.values["now"] = fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro())
	s.values["next_month"] = time.Now().AddDate(0, 1, 0).Format("2006-01-02")
	s.post(b, creation{"other_group", "groups", `{"name":"gear","path":"other","visibility":"public"}`})
	for _, c := range creations {
		s.post(b, c)
	}
	for _, in := range insertions {
		s.change(b, "INSERT INTO "+in.table+" ("+in.columns+") SELECT "+in.values)
		if in.name != "" {
			s.values[in.name] = s.text(b, "SELECT max(id) FROM "+in.table)
		}
	}
}

// post sends a request to create a row.
func (s *fullSite) post(b testing.TB, c creation) {
	b.Helper()
	address := "http://" + s.Addr() + "/api/v4/" + s.replace(c.path)
	q, err := http.NewRequestWithContext(b.Context(), http.MethodPost, address, strings.NewReader(s.replace(c.body)))
	check(b, err)
	q.Header.Set("PRIVATE-TOKEN", rootToken)
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	check(b, err)
	defer res.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(res.Body)
	check(b, err)
	if res.StatusCode != http.StatusCreated {
		b.Errorf("POST %s: %s: %s", address, res.Status, &text)
		return
	}
	if c.name == "" {
		return
	}
	var made struct{ ID any }
	d := json.NewDecoder(&text)
	d.UseNumber()
	check(b, d.Decode(&made))
	s.values[c.name] = fmt.Sprint(made.ID)
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// replace replaces the placeholders in a text.
func (s *fullSite) replace(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if v, ok := s.values[p[1:len(p)-1]]; ok {
			return v
		}
		return p
	})
}

func (s *fullSite) text(b testing.TB, query string, args ...any) (text string) {
	b.Helper()
	check(b, s.DB.QueryRowContext(b.Context(), query, args...).Scan(&text))
	return text
}

// insertion is a row that requests cannot create without other servers, files or
// keys.
type insertion struct{ name, table, columns, values string }

const at = "1700000000000000"

var insertions = []insertion{
	{"import", "bulk_imports", "user_id, source_url, token, state, created_at, updated_at", "1, 'https://example.org', '', 'finished', " + at + ", " + at},
	{"entity", "bulk_import_entities", "bulk_import_id, kind, source_path, slug, namespace, projects, members, state, created_at, updated_at",
		"{import}, 'project_entity', 'gear', 'gear', 'g', TRUE, TRUE, 'finished', " + at + ", " + at},
	{"", "bulk_import_failures", "entity_id, relation, title, path, message, created_at", "{entity}, 'issues', 'gear', '', 'gear', " + at},
	{"", "group_imports", "user_id, name, path, state, file, created_at, finished_at", "1, 'gear', 'gear', 'finished', '', " + at + ", " + at},
	{"deploy_key", "deploy_keys", "title, key, fingerprint, sha256, public, created_by, created_at", "'gear', 'ssh-ed25519 AAAA', 'a', 'gear', TRUE, {worker}, " + at},
	{"", "deploy_key_projects", "deploy_key_id, project_id, created_at", "{deploy_key}, {project}, " + at},
	{"", "storage_moves", "kind, owner_id, source, destination, state, created_at, updated_at", "'project', {project}, 'default', 'other', 'finished', " + at + ", " + at},
	{"", "storage_moves", "kind, owner_id, source, destination, state, created_at, updated_at", "'group', {group}, 'default', 'other', 'finished', " + at + ", " + at},
	{"", "storage_moves", "kind, owner_id, source, destination, state, created_at, updated_at", "'snippet', {personal_snippet}, 'default', 'other', 'finished', " + at + ", " + at},
	{"", "members", "project_id, user_id, access_level, created_at, requested_at", "{project}, {stranger}, 30, " + at + ", " + at},
	{"", "members", "namespace_id, user_id, access_level, created_at, requested_at", "{group}, {stranger}, 30, " + at + ", " + at},
	{"event", "hook_events", "uuid, project_id, trigger, header, payload, created_at", "'gear', {project}, 'push_events', 'Push Hook', '{}', " + at},
	{"", "hook_deliveries", "hook_id, event_id, waiting, key, response_status, created_at, delivered_at", "{hook}, {event}, FALSE, 'gear', 200, " + at + ", " + at},
	{"", "hook_deliveries", "hook_id, event_id, waiting, key, response_status, created_at, delivered_at", "{group_hook}, {event}, FALSE, 'gear', 200, " + at + ", " + at},
	{"package", "packages", "project_id, type, name, lookup, version, status, metadata, creator_id, created_at, updated_at",
		"{project}, 'generic', 'gear', 'gear', '1.7', 'default', '{}', 1, " + at + ", " + at},
	{"package_blob", "package_blobs", "sha256, sha1, md5, size, blob, created_at", "'gear', 'gear', 'gear', 1, 'gear', " + at},
	{"", "package_files", "package_id, project_id, blob_id, name, size, metadata, created_at", "{package}, {project}, {package_blob}, 'gear', 1, '{}', " + at},
	{"", "package_pipelines", "package_id, pipeline_id", "{package}, {pipeline}"},
	{"alert", "alerts", "project_id, iid, status, severity, started_at, created_at, updated_at, fingerprint, format, title, monitoring_tool, environment, payload",
		"{project}, 1, 'triggered', 1, " + at + ", " + at + ", " + at + ", 'gear', 'generic', 'gear', 'gear', 'gear', '{}'"},
	{"", "alert_metric_images", "alert_id, secret, name, created_at", "{alert}, 'gear', 'gear', " + at},
	{"fork", "projects", "namespace_id, path, name, full_path, visibility, creator_id, forked_from_id, last_activity_at, created_at, updated_at",
		"{group}, 'fork', 'gear', 'g/fork', 'public', {worker}, {project}, " + at + ", " + at + ", " + at},
	{"", "projects", "namespace_id, path, name, full_path, visibility, creator_id, last_activity_at, created_at, updated_at",
		"(SELECT namespace_id FROM users WHERE id = {worker}), 'own', 'gear', 'worker/own', 'public', {worker}, " + at + ", " + at + ", " + at},
	{"", "pages_domains", "project_id, domain, verification_code, created_at, updated_at", "{project}, 'gear.example.org', 'gear', " + at + ", " + at},
	{"schedule", "pipeline_schedules", "project_id, owner_id, description, ref, cron, active, created_at, updated_at", "{project}, 1, 'gear', 'main', '0 0 1 1 *', FALSE, " + at + ", " + at},
	{"", "mirrors", "project_id, user_id, direction, enabled, url, auth_method, status, created_at", "{project}, 1, 'push', FALSE, 'https://example.org/gear.git', 'password', 'finished', " + at},
	{"", "secure_files", "project_id, name, size, sha256, blob, sealed_key, created_at", "{project}, 'gear', 1, 'gear', 'gear', '', " + at},
	{"", "uploads", "project_id, secret, name, size, author_id, created_at", "{project}, 'gear', 'gear', 1, 1, " + at},
	{"manager", "runner_managers", "runner_id, system_id, version, contacted_at, created_at", "{runner}, 'gear', '1.0', " + at + ", " + at},
	{"", "todos", "user_id, author_id, project_id, target_type, issue_id, action, state, created_at, updated_at", "1, {worker}, {project}, 'Issue', {issue}, 'assigned', 'pending', " + at + ", " + at},
	{"", "resource_events", "kind, noteable_type, noteable_id, project_id, user_id, action, created_at", "'state', 'Issue', {issue}, {project}, 1, 'closed', " + at},
	{"", "resource_events", "kind, noteable_type, noteable_id, project_id, user_id, action, created_at", "'state', 'MergeRequest', {merge_request}, {project}, 1, 'closed', " + at},
	{"", "emails", "user_id, email, confirmed_at, created_at", "1, 'second@example.org', " + at + ", " + at},
	{"", "emails", "user_id, email, confirmed_at, created_at", "{worker}, 'third@example.org', " + at + ", " + at},
	{"", "ssh_keys", "user_id, title, key, fingerprint, sha256, created_at", "1, 'gear', 'ssh-ed25519 AAAA', 'a', 'gear', " + at},
	{"", "ssh_keys", "user_id, title, key, fingerprint, sha256, created_at", "{worker}, 'gear', 'ssh-ed25519 AAAA', 'a', 'train', " + at},
	{"", "gpg_keys", "user_id, key, fingerprint, created_at", "1, 'gear', 'gear', " + at},
	{"", "gpg_keys", "user_id, key, fingerprint, created_at", "{worker}, 'gear', 'train', " + at},
	{"", "follows", "follower_id, followed_id, created_at", "{worker}, 1, " + at},
	{"", "follows", "follower_id, followed_id, created_at", "{stranger}, {worker}, " + at},
	{"", "stars", "user_id, project_id, created_at", "{worker}, {project}, " + at},
	{"", "activity_events", "project_id, author_id, action, audience, push, created_at",
		`{project}, {worker}, 'pushed', 2, '{"action":"pushed","ref_type":"branch","ref":"main","from":"","to":"","commit_count":1,"commit_title":"gear"}', {now}`},
	{"", "user_custom_attributes", "user_id, key, value", "{worker}, 'gear', 'gear'"},
	{"", "project_custom_attributes", "project_id, key, value", "{project}, 'gear', 'gear'"},
	{"", "group_custom_attributes", "namespace_id, key, value", "{group}, 'gear', 'gear'"},
	{"", "merge_request_issues", "merge_request_id, issue_id, closes", "{second}, {issue}, TRUE"},
}

// change runs a statement after replacing its placeholders.
func (s *fullSite) change(b testing.TB, statement string, args ...any) {
	b.Helper()
	statement = s.replace(statement)
	check(b, s.DB.Tx(b.Context(), func(tx *db.Tx) error {
		if _, err := tx.ExecContext(b.Context(), statement, args...); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		return nil
	}))
}

// changes complete the rows before they are copied.
var changes = []string{
	"UPDATE jobs SET status = 'success', runner_id = {runner}, runner_manager_id = {manager}",
	"UPDATE pipelines SET status = 'success', schedule_id = {schedule}",
	"DELETE FROM job_queue",
}

// copies are the rows of a table that are copied, with other values in some columns;
// n is the number of the copy, from 1. Columns whose names end in _at become later
// with n. There are as many copies as rows are asked for, divided by part, and at most
// as many as the program allows, or as anybody would create in one place.
type copies struct {
	table, where string
	set          map[string]string
	part, most   int
	name         string // of the placeholder that becomes the ID before those of the copies
}

var named = map[string]string{"name": "t.name || '-' || n"}

var everyCopy = []copies{
	{table: "namespaces", where: "id = {subgroup}", part: 10, name: "groups", set: map[string]string{
		"path": "'gear-' || n", "full_path": "'g/gear-' || n", "name": "'gear ' || n"}},
	{table: "namespaces", where: "id = {other_group}", part: 10, name: "others", set: map[string]string{
		"path": "'other-' || n", "full_path": "'other-' || n", "name": "'gear ' || n"}},
	{table: "projects", where: "id = {project}", part: 10, name: "projects", set: map[string]string{
		"path": "'gear-' || n", "full_path": "'g/gear-' || n", "name": "'gear ' || n"}},
	{table: "projects", where: "id = {fork}", part: 10, set: map[string]string{"path": "'fork-' || n", "full_path": "'g/fork-' || n", "name": "'gear ' || n"}},
	{table: "projects", where: "full_path = 'worker/own'", part: 10, set: map[string]string{
		"path": "'own-' || n", "full_path": "'worker/own-' || n", "name": "'gear ' || n"}},
	{table: "projects", where: "id = {outside}", part: 100, name: "outsides", set: map[string]string{
		"path": "'outside-' || n", "full_path": "'root/outside-' || n", "name": "'gear ' || n"}},
	{table: "group_shares", where: "project_id = {outside}", part: 100, set: map[string]string{"project_id": "{outsides} + n"}},
	{table: "group_shares", where: "project_id = {project}", part: 10, most: 200, set: map[string]string{"group_id": "{others} + n"}},
	{table: "group_shares", where: "namespace_id = {group}", part: 10, most: 200, set: map[string]string{"group_id": "{others} + n"}},
	{table: "topics", set: named},
	{table: "members", where: "project_id = {project} AND requested_at IS NULL AND user_id = {worker}", part: 2, set: map[string]string{"user_id": "{users} + n"}},
	{table: "members", where: "namespace_id = {group} AND requested_at IS NULL AND user_id = {worker}", part: 2, set: map[string]string{"user_id": "{users} + n"}},
	{table: "members", where: "project_id = {project} AND requested_at IS NOT NULL", part: 2, set: map[string]string{"user_id": "{half} + n"}},
	{table: "members", where: "namespace_id = {group} AND requested_at IS NOT NULL", part: 2, set: map[string]string{"user_id": "{half} + n"}},
	{table: "members", where: "project_id = {project} AND user_id = {worker}", part: 10, set: map[string]string{"project_id": "{projects} + n"}},
	{table: "stars", where: "user_id = {worker}", set: map[string]string{"user_id": "{users} + n"}},
	{table: "stars", where: "user_id = {worker}", part: 10, set: map[string]string{"project_id": "{projects} + n"}},
	{table: "follows", where: "follower_id = {worker}", set: map[string]string{"followed_id": "{users} + n"}},
	{table: "follows", where: "follower_id = {stranger}", set: map[string]string{"follower_id": "{users} + n"}},
	{table: "activity_events", where: "author_id = {worker} AND push <> ''"},
	{table: "activity_events", where: "id = (SELECT min(id) FROM activity_events WHERE author_id = {worker} AND push <> '')", part: 100, set: map[string]string{"project_id": "{projects} + n"}},
	{table: "activity_events", where: "id = (SELECT min(id) FROM activity_events WHERE author_id = 1 AND project_id = {project})"},
	{table: "emails", where: "email = 'third@example.org'", most: 20, set: map[string]string{"email": "'third-' || n || '@example.org'"}},
	{table: "ssh_keys", where: "user_id = {worker}", set: map[string]string{"sha256": "t.sha256 || n"}},
	{table: "ssh_keys", where: "user_id = 1", set: map[string]string{"sha256": "t.sha256 || n"}},
	{table: "gpg_keys", where: "user_id = {worker}", most: 100, set: map[string]string{"fingerprint": "t.fingerprint || n"}},
	{table: "access_tokens", where: "kind = 'impersonation'", set: map[string]string{"digest": "t.digest || n"}},
	{table: "access_tokens", where: "kind = 'personal' AND user_id = {worker}", set: map[string]string{"digest": "t.digest || n"}},
	{table: "access_tokens", where: "user_id = {service_account}", set: map[string]string{"digest": "t.digest || n"}},
	{table: "deploy_tokens", where: "project_id = {project}", most: 10_000, set: map[string]string{"digest": "t.digest || n"}},
	{table: "deploy_tokens", where: "namespace_id = {group}", most: 10_000, set: map[string]string{"digest": "t.digest || n"}},
	{table: "deploy_keys", where: "id = {deploy_key}", name: "deploy_keys", set: map[string]string{"sha256": "t.sha256 || n"}},
	{table: "deploy_key_projects", set: map[string]string{"deploy_key_id": "{deploy_keys} + n"}},
	{table: "oauth_applications", where: "name = 'gear'", set: map[string]string{"uid": "t.uid || n"}},
	{table: "broadcast_messages", most: 1000},
	{table: "hooks", where: "id = {hook}", most: 100},
	{table: "hooks", where: "id = {group_hook}", most: 50},
	{table: "hooks", where: "id = {system_hook}", most: 100},
	{table: "hook_deliveries"},
	{table: "invitations", where: "project_id IS NOT NULL", most: 1000, set: map[string]string{"email": "t.email || n", "digest": "t.digest || n"}},
	{table: "invitations", where: "namespace_id IS NOT NULL", most: 1000, set: map[string]string{"email": "t.email || n", "digest": "t.digest || n"}},
	{table: "ci_variables", most: 10_000, set: map[string]string{"key": "t.key || n"}},
	{table: "instance_variables", most: 10_000, set: map[string]string{"key": "t.key || n"}},
	{table: "badges", most: 1000},
	{table: "labels", where: "name LIKE 'gear%'", most: 10_000, set: named},
	{table: "milestones", most: 10_000, set: map[string]string{"iid": "10 + n", "title": "t.title || n"}},
	{table: "boards", most: 1000},
	{table: "issues", where: "iid = 1 AND project_id = {project}", name: "issues", set: map[string]string{"iid": "10 + n"}},
	{table: "issues", where: "iid = 2 AND project_id = {project}", set: map[string]string{"iid": "100000000 + n"}},
	{table: "issue_labels", set: map[string]string{"issue_id": "{issues} + n"}},
	{table: "issue_assignees", set: map[string]string{"issue_id": "{issues} + n"}},
	{table: "issue_assignees", where: "issue_id = {issue}", most: 100, set: map[string]string{"user_id": "{users} + n"}},
	{table: "merge_requests", where: "id = {merge_request}", name: "requests", set: map[string]string{"iid": "10 + n"}},
	{table: "merge_requests", where: "id = {second}", set: map[string]string{"iid": "100000000 + n"}},
	{table: "merge_request_labels", set: map[string]string{"merge_request_id": "{requests} + n"}},
	{table: "merge_request_assignees", set: map[string]string{"merge_request_id": "{requests} + n"}},
	{table: "merge_request_reviewers", set: map[string]string{"merge_request_id": "{requests} + n"}},
	{table: "merge_request_issues", where: "merge_request_id = {second}", set: map[string]string{"merge_request_id": "{requests} + n"}},
	{table: "merge_request_issues", where: "merge_request_id = {second}", set: map[string]string{"issue_id": "{issues} + n"}},
	{table: "merge_request_versions", where: "merge_request_id = {merge_request}", most: 1000},
	{table: "merge_request_commits", where: "merge_request_id = {merge_request}", set: map[string]string{"merge_request_id": "{requests} + n"}},
	{table: "merge_request_blocks", most: 1000, set: map[string]string{"blocked_id": "{requests} + n"}},
	{table: "draft_notes", most: 1000},
	{table: "notes", where: "id = {issue_note}", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "notes", where: "id = {merge_request_note}", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "notes", where: "id = {snippet_note}", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "notes", where: "discussion_id = '{issue_discussion}'", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "notes", where: "discussion_id = '{merge_request_discussion}'", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "notes", where: "discussion_id = '{snippet_discussion}'", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "commit_comments", set: map[string]string{"discussion_id": "t.discussion_id || n"}},
	{table: "award_emoji", set: map[string]string{"user_id": "{users} + n"}},
	{table: "resource_events"},
	{table: "snippets", where: "id = {snippet}"},
	{table: "snippets", where: "id = {personal_snippet}"},
	{table: "feature_flags", most: 1000, set: map[string]string{"iid": "10 + n", "name": "t.name || n"}},
	{table: "feature_flag_user_lists", most: 1000, set: map[string]string{"iid": "10 + n", "name": "t.name || n"}},
	{table: "freeze_periods", most: 1000},
	{table: "environments", set: named, name: "environments"},
	{table: "deployments", set: map[string]string{"iid": "10 + n"}},
	{table: "protected_environments", most: 1000, set: named},
	{table: "protected_refs", where: "name LIKE 'gear%'", most: 1000, set: named},
	{table: "pipelines", where: "id = {pipeline}", name: "pipelines", set: map[string]string{"iid": "10 + n"}},
	{table: "jobs", where: "pipeline_id = {pipeline}", set: map[string]string{"token_digest": "NULL"}},
	{table: "jobs", where: "id = (SELECT min(id) FROM jobs WHERE pipeline_id = {pipeline} AND resource_group_id IS NOT NULL)", set: map[string]string{"token_digest": "NULL", "status": "'created'"}},
	{table: "commit_statuses", set: named},
	{table: "resource_groups", set: map[string]string{"key": "t.key || n"}},
	{table: "pipeline_schedules"},
	{table: "pipeline_triggers", most: 10_000, set: map[string]string{"digest": "{blob}"}},
	{table: "job_token_allowlist", where: "target_project_id IS NOT NULL AND target_project_id <> project_id", part: 10, most: 400, set: map[string]string{"target_project_id": "{projects} + n"}},
	{table: "job_token_allowlist", where: "target_namespace_id IS NOT NULL", part: 10, most: 400, set: map[string]string{"target_namespace_id": "{others} + n"}},
	{table: "packages", name: "packages", set: map[string]string{"name": "t.name || n", "lookup": "t.lookup || n"}},
	{table: "package_files", most: 20_000},
	{table: "package_pipelines", set: map[string]string{"pipeline_id": "{pipelines} + n"}},
	{table: "package_protection_rules", most: 200, set: map[string]string{"name_pattern": "t.name_pattern || n"}},
	{table: "releases", set: map[string]string{"tag": "'v1-' || n"}},
	{table: "release_links", most: 1000, set: map[string]string{"name": "t.name || n", "url": "t.url || n"}},
	{table: "runners", where: "kind = 'project_type'", name: "runners", set: map[string]string{"token_digest": "{blob}"}},
	{table: "runners", where: "kind = 'group_type'", set: map[string]string{"token_digest": "{blob_group}"}},
	{table: "runners", where: "kind = 'instance_type'", set: map[string]string{"token_digest": "{blob_instance}"}},
	{table: "runner_projects", set: map[string]string{"runner_id": "{runners} + n"}},
	{table: "runner_managers", where: "id = {manager}", set: map[string]string{"system_id": "t.system_id || n"}, most: 100},
	{table: "cluster_agents", set: named},
	{table: "alerts", set: map[string]string{"iid": "10 + n"}},
	{table: "alert_metric_images", most: 100},
	{table: "bulk_imports"},
	{table: "bulk_import_entities", most: 10_000},
	{table: "bulk_import_failures", most: 1000},
	{table: "group_imports"},
	{table: "storage_moves"},
	{table: "pages_domains", set: map[string]string{"domain": "n || t.domain"}},
	{table: "project_aliases", set: named},
	{table: "secure_files", most: 100, set: map[string]string{"name": "t.name || n", "blob": "t.blob || n"}},
	{table: "uploads", set: map[string]string{"secret": "t.secret || n"}},
	{table: "todos", where: "user_id = 1 AND issue_id = {issue}", set: map[string]string{"issue_id": "{issues} + n"}},
	{table: "audit_events", where: "id = (SELECT max(id) FROM audit_events WHERE entity_type = 'Project')"},
	{table: "audit_events", where: "id = (SELECT max(id) FROM audit_events WHERE entity_type = 'Group')"},
}

// copyAll copies the rows of all lists.
func (s *fullSite) copyAll(b testing.TB, rows int) {
	b.Helper()
	fillUsers(b, s.DB, rows)
	if s.DB.Postgres() { // fillUsers sets the IDs of namespaces
		s.text(b, "SELECT setval(pg_get_serial_sequence('namespaces', 'id'), (SELECT max(id) FROM namespaces))")
	}
	s.values["users"] = s.text(b, "SELECT min(id) - 1 FROM users WHERE email LIKE 'user-%'")
	s.values["half"] = s.text(b, "SELECT min(id) - 1 + CAST(? AS BIGINT) FROM users WHERE email LIKE 'user-%'", rows/2)
	for _, name := range []string{"blob", "blob_group", "blob_instance"} {
		s.values[name] = "CAST('" + name + "' || n AS BLOB)"
		if s.DB.Postgres() {
			s.values[name] = "convert_to('" + name + "' || n, 'UTF8')"
		}
	}
	for _, q := range changes {
		s.change(b, q)
	}
	tables := []string{"group_counters", "namespace_tree"}
	for _, c := range everyCopy {
		tables = append(tables, c.table)
	}
	pragma(b, s.DB, "PRAGMA synchronous = OFF")
	restore := dropIndexes(b, s.DB, tables...)
	for _, c := range everyCopy {
		s.copyRows(b, c, rows)
	}
	s.change(b, `INSERT INTO namespace_tree (ancestor_id, descendant_id, depth) SELECT id, id, 0 FROM namespaces WHERE id > {groups} AND kind = 'group'`)
	s.change(b, `INSERT INTO namespace_tree (ancestor_id, descendant_id, depth) SELECT parent_id, id, 1 FROM namespaces WHERE id > {groups} AND parent_id IS NOT NULL`)
	restore()
	s.seal(b, "ci_variables", "value", "1")
	s.seal(b, "instance_variables", "value", "1")
	s.seal(b, "pipeline_triggers", "token", "gear")
	if s.DB.Postgres() {
		_, err := s.DB.SQL().ExecContext(b.Context(), "VACUUM ANALYZE")
		check(b, err)
	}
	pragma(b, s.DB, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA synchronous = FULL")
}

// copyRows copies rows of a table.
func (s *fullSite) copyRows(b testing.TB, c copies, rows int) {
	b.Helper()
	n := rows / max(c.part, 1)
	if c.most > 0 {
		n = min(n, c.most)
	}
	var last sql.NullInt64
	columns, values := s.columns(b, c)
	if c.name != "" {
		check(b, s.DB.QueryRowContext(b.Context(), "SELECT max(id) FROM "+c.table).Scan(&last))
		s.values[c.name] = fmt.Sprint(last.Int64)
	}
	where := ""
	if c.where != "" {
		where = " WHERE " + c.where
	}
	if count(b, s.Server, s.replace("SELECT count(*) FROM "+c.table+where)) == 0 {
		b.Errorf("no row of %s with %s", c.table, c.where)
	}
	s.change(b, series+", template AS (SELECT * FROM "+c.table+where+") INSERT INTO "+c.table+" ("+columns+") SELECT "+values+" FROM template t CROSS JOIN series ORDER BY n", n)
}

// seal seals a value for each row of a table, because each has its own key.
func (s *fullSite) seal(b testing.TB, table, column, value string) {
	b.Helper()
	ids, err := db.All(b.Context(), s.DB, db.Value[int64], "SELECT id FROM "+table)
	check(b, err)
	check(b, s.DB.Tx(b.Context(), func(tx *db.Tx) error {
		for _, id := range ids {
			sealed := s.Keys.Seal([]byte(value), fmt.Sprintf("%s/%s/%d", table, column, id))
			if _, err := tx.ExecContext(b.Context(), "UPDATE "+table+" SET "+column+" = ? WHERE id = ?", sealed, id); err != nil {
				return err
			}
		}
		return nil
	}))
}

// columns returns the columns of a table without the ID, and their values in copies.
func (s *fullSite) columns(b testing.TB, c copies) (columns, values string) {
	b.Helper()
	rows, err := s.DB.SQL().QueryContext(b.Context(), "SELECT * FROM "+c.table+" LIMIT 0")
	check(b, err)
	defer rows.Close()
	names, err := rows.Columns()
	check(b, err)
	check(b, rows.Err())
	var to, from []string
	for _, name := range names {
		value := "t." + name
		switch {
		case name == "id":
			continue
		case c.set[name] != "":
			value = c.set[name]
		case strings.HasSuffix(name, "_at") && name != "expires_at":
			value += " + n"
		}
		to, from = append(to, name), append(from, value)
	}
	return strings.Join(to, ", "), strings.Join(from, ", ")
}
