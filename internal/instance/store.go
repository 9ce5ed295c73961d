package instance

import (
	"context"
	"strings"

	"svc/internal/db"
)

// most is the number up to which objects are counted.
const most = 10_000

// count counts all objects in one query.
func count(ctx context.Context, q db.Q) (*Counts, error) {
	c := &Counts{}
	var columns []string
	var to, args []any
	for _, one := range []struct {
		to   *Count
		from string
	}{
		{&c.Users, "users WHERE deleted_at IS NULL AND kind = 'human'"},
		{&c.Pending, "users WHERE deleted_at IS NULL AND state = 'blocked_pending_approval'"},
		{&c.Blocked, "users WHERE deleted_at IS NULL AND state IN ('blocked', 'banned')"},
		{&c.Groups, "namespaces WHERE deleted_at IS NULL AND kind = 'group'"},
		{&c.Projects, "projects WHERE deleted_at IS NULL"},
		{&c.Archived, "projects WHERE deleted_at IS NULL AND archived"},
		{&c.Pipelines, "pipelines"},
		{&c.Running, "jobs WHERE status = 'running'"},
		{&c.Waiting, "job_queue"},
		{&c.Runners, "runners"},
	} {
		columns = append(columns, "(SELECT count(*) FROM (SELECT 1 FROM "+one.from+" LIMIT ?) t)")
		to, args = append(to, &one.to.N), append(args, most+1)
	}
	if err := q.QueryRowContext(ctx, "SELECT "+strings.Join(columns, ", "), args...).Scan(to...); err != nil {
		return nil, err
	}
	for _, one := range []*Count{&c.Users, &c.Pending, &c.Blocked, &c.Groups, &c.Projects, &c.Archived, &c.Pipelines, &c.Running, &c.Waiting, &c.Runners} {
		if one.Over = one.N > most; one.Over {
			one.N = most
		}
	}
	return c, nil
}

// usage returns the numbers and sizes of repositories by storage.
func usage(ctx context.Context, q db.Q) (map[string]Storage, error) {
	list, err := db.All(ctx, q, func(sc db.Scanner) (Storage, error) {
		var s Storage
		err := sc.Scan(&s.Name, &s.Projects, &s.ReadOnly, &s.Bytes)
		return s, err
	}, `SELECT p.storage, count(*), CAST(SUM(CASE WHEN p.read_only THEN 1 ELSE 0 END) AS BIGINT), CAST(COALESCE(SUM(t.repository_size), 0) AS BIGINT)
		FROM projects p LEFT JOIN project_statistics t ON t.project_id = p.id WHERE p.deleted_at IS NULL GROUP BY p.storage`)
	if err != nil {
		return nil, err
	}
	used := map[string]Storage{}
	for _, s := range list {
		used[s.Name] = s
	}
	auxRepos, err := db.All(ctx, q, func(sc db.Scanner) (Storage, error) {
		var s Storage
		err := sc.Scan(&s.Name, &s.Snippets, &s.Wikis, &s.Bytes)
		return s, err
	}, `SELECT a.storage, CAST(SUM(CASE WHEN a.kind = 'snippet' THEN 1 ELSE 0 END) AS BIGINT), CAST(SUM(CASE WHEN a.kind = 'wiki' THEN 1 ELSE 0 END) AS BIGINT),
			CAST(SUM(a.size) AS BIGINT)
		FROM annexes a GROUP BY a.storage`)
	if err != nil {
		return nil, err
	}
	for _, a := range auxRepos {
		s := used[a.Name]
		s.Snippets, s.Wikis = a.Snippets, a.Wikis
		s.Bytes += a.Bytes
		used[a.Name] = s
	}
	return used, nil
}

// statistics counts in one query. The counts are exact, because administrators
// request them rarely.
func statistics(ctx context.Context, q db.Q) (*Statistics, error) {
	s := &Statistics{}
	var columns []string
	var to []any
	for _, one := range []struct {
		to   *int64
		from string
	}{
		{&s.Forks, "projects WHERE deleted_at IS NULL AND forked_from_id IS NOT NULL"},
		{&s.Issues, "issues"},
		{&s.MergeRequests, "merge_requests"},
		{&s.Notes, "notes"},
		{&s.Snippets, "snippets"},
		{&s.SSHKeys, "ssh_keys"},
		{&s.Milestones, "milestones"},
		{&s.Users, "users WHERE deleted_at IS NULL AND kind = 'human'"},
		{&s.ActiveUsers, "users WHERE deleted_at IS NULL AND kind = 'human' AND state = 'active'"},
		{&s.Groups, "namespaces WHERE deleted_at IS NULL AND kind = 'group'"},
		{&s.Projects, "projects WHERE deleted_at IS NULL"},
	} {
		columns, to = append(columns, "(SELECT count(*) FROM "+one.from+")"), append(to, one.to)
	}
	return s, q.QueryRowContext(ctx, "SELECT "+strings.Join(columns, ", ")).Scan(to...)
}
