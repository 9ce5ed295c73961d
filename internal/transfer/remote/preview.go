package remote

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// Amount is the number of objects of a relation at the source; -1 if it is unknown.
type Amount struct {
	Relation string
	N        int64
}

// Preview is a group or project that would be imported.
type Preview struct {
	Place
	Project bool
	Amounts []Amount
}

// PreviewProject counts what a project has.
func (c *Client) PreviewProject(ctx context.Context, path string) (Preview, error) {
	p, err := c.FindProject(ctx, path)
	if err != nil {
		return Preview{}, err
	}
	amounts, err := c.amounts(ctx, at("projects", p.ID, ""), "issues", "merge_requests", "labels", "milestones", "releases", "snippets", "members", "pipeline_schedules", "variables")
	return Preview{p, true, amounts}, err
}

// PreviewGroup counts what a group, its subgroups and, with projects, their projects
// have, and calls show with each.
func (c *Client) PreviewGroup(ctx context.Context, path string, projects bool, show func(Preview) error) error {
	r := &Reader{Client: c, State: &State{}, Skip: func(Skipped) {}}
	if err := r.tree(ctx, path); err != nil {
		return err
	}
	for _, g := range r.Groups {
		amounts, err := c.amounts(ctx, at("groups", g.ID, ""), "labels", "milestones", "members", "variables")
		if err != nil {
			return err
		}
		if err := show(Preview{g, false, amounts}); err != nil {
			return err
		}
	}
	if !projects {
		return nil
	}
	if err := r.projects(ctx); err != nil {
		return err
	}
	for _, p := range r.Projects {
		found, err := c.PreviewProject(ctx, p.Path)
		if err != nil {
			return err
		}
		if err := show(found); err != nil {
			return err
		}
	}
	return nil
}

// amounts reads the totals of lists. Those that the token does not see are left out.
func (c *Client) amounts(ctx context.Context, base string, relations ...string) ([]Amount, error) {
	var list []Amount
	for _, relation := range relations {
		query := url.Values{"per_page": {"1"}}
		if relation == "issues" || relation == "merge_requests" {
			query.Set("scope", "all")
		}
		n := int64(-1)
		err := c.get(ctx, base+"/"+relation, query, c.limits.Body, func(a answer) error {
			if total, err := strconv.ParseInt(a.header.Get("X-Total"), 10, 64); err == nil && total >= 0 {
				n = total
			}
			_, err := io.Copy(io.Discard, a.body)
			return err
		})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Amount{relation, n})
	}
	return list, nil
}
