package remote

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"svc/internal/transfer/archive"
)

// GroupSteps returns the steps that read a group by its full path, with its subgroups.
func (r *Reader) GroupSteps(path string, projects bool) []Step {
	steps := []Step{
		{"group", func(ctx context.Context, _ Output) error { return r.tree(ctx, path) }},
		{"groups", r.groups},
	}
	if projects {
		steps = append(steps, Step{"projects", func(ctx context.Context, _ Output) error { return r.projects(ctx) }})
	}
	return steps
}

// FindGroup looks a group up. Failure.
func (c *Client) FindGroup(ctx context.Context, path string) (Place, error) {
	g, err := one[groupJSON](ctx, c, "/groups/"+url.PathEscape(path), url.Values{"with_projects": {"false"}})
	if err != nil {
		return Place{}, err
	}
	if g.ID <= 0 {
		return Place{}, fail("The source does not answer like a server of the v4 API.")
	}
	return Place{ID: g.ID, Path: path, Name: cut(g.Name, maxName), Visibility: cut(g.Visibility, 20)}, nil
}

// maxGroups is the maximum number of groups of an import.
const maxGroups = 20_000

// tree finds the group and its subgroups: those above come first.
func (r *Reader) tree(ctx context.Context, path string) error {
	parts, ok := splitFullPath(path)
	if !ok {
		return fail("The path of the group is not valid.")
	}
	g, err := r.FindGroup(ctx, path)
	if err != nil {
		return err
	}
	r.ID, r.Name, r.FullPath, r.Path, r.Groups = g.ID, g.Name, path, parts[len(parts)-1], []Place{g}
	seen := map[int64]bool{g.ID: true}
	err = list(ctx, r.Client, at("groups", r.ID, "/descendant_groups"), url.Values{"all_available": {"true"}, "order_by": {"id"}}, func(page []groupJSON) error {
		for _, g := range page {
			if seen[g.ID] || g.ID <= 0 {
				continue
			}
			seen[g.ID] = true
			if !CheckPath(g.FullPath) || !strings.HasPrefix(g.FullPath, path+"/") || len(r.Groups) >= maxGroups {
				r.Skip(Skipped{Relation: "groups", Name: cut(g.FullPath, maxName), Why: "The path is not one of a subgroup, or there are too many groups."})
				continue
			}
			r.Groups = append(r.Groups, Place{ID: g.ID, Path: g.FullPath, Name: cut(g.Name, maxName), Visibility: cut(g.Visibility, 20)})
		}
		return nil
	}, r.bad("groups", ""))
	if err != nil {
		return err
	}
	slices.SortStableFunc(r.Groups[1:], func(a, b Place) int { return strings.Compare(a.Path, b.Path) })
	r.orphans()
	return nil
}

// orphans removes groups whose parent is not there.
func (r *Reader) orphans() {
	there := map[string]bool{}
	r.Groups = slices.DeleteFunc(r.Groups, func(g Place) bool {
		above := g.Path[:max(0, strings.LastIndexByte(g.Path, '/'))]
		if g.Path != r.FullPath && !there[above] || there[g.Path] {
			r.Skip(Skipped{Relation: "groups", Name: g.Path, Why: "The source does not show the group above, or has the path twice."})
			return true
		}
		there[g.Path] = true
		return false
	})
}

// groupNames are the labels and milestones of a group, and its number in the file.
type groupNames struct {
	labels, milestones names
	number             int
}

// groups writes the groups.
func (r *Reader) groups(ctx context.Context, out Output) error {
	known := map[string]groupNames{} // by path
	digests := map[int64]string{}
	for n, g := range r.Groups {
		out.Next()
		found := groupNames{names{}, names{}, n + 1}
		known[g.Path] = found
		if err := r.group(ctx, g, found, known, digests, out); err != nil {
			return err
		}
		r.count("groups", 1)
	}
	return nil
}

func (r *Reader) group(ctx context.Context, g Place, own groupNames, known map[string]groupNames, digests map[int64]string, out Output) error {
	query := url.Values{"with_projects": {"false"}}
	fields, err := one[fieldsJSON](ctx, r.Client, at("groups", g.ID, ""), query)
	if err != nil {
		return err
	}
	about, err := one[groupJSON](ctx, r.Client, at("groups", g.ID, ""), query)
	if err != nil {
		return err
	}
	row := archive.GroupRow{Description: cut(about.Description, 500), CreatedAt: utc(about.CreatedAt), Settings: r.GroupSettings(fields)}
	if g.Path != r.FullPath {
		row.Path, row.Name = strings.TrimPrefix(g.Path, r.FullPath+"/"), g.Name
		if strings.TrimSpace(row.Name) == "" {
			row.Name = row.Path[strings.LastIndexByte(row.Path, '/')+1:]
		}
	}
	err = out.File(archive.WikiPart, "", func(w io.Writer) (ok bool, err error) {
		row.WikiBranch, ok, err = r.bundle(ctx, g.Path+".wiki", w, nil)
		return ok, err
	})
	if isFailure(err) { // most servers have no wikis of groups
		row.WikiBranch = ""
	} else if err != nil {
		return err
	}
	if err := out.Row(archive.GroupPart, row); err != nil {
		return err
	}
	if err := r.avatar(ctx, "groups", g.ID, about.AvatarURL, out); err != nil {
		return err
	}
	err = list(ctx, r.Client, at("groups", g.ID, "/labels"), url.Values{"include_ancestor_groups": {"false"}, "only_group_labels": {"true"}}, func(page []labelJSON) error {
		for _, l := range page {
			if !r.isNew(own.labels, "labels", l.Name) {
				continue
			}
			r.count("labels", 1)
			if err := out.Row(archive.LabelPart, label(l, r.o.Now)); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("labels", g.Path))
	if err := r.forgive("labels", err); err != nil {
		return err
	}
	err = list(ctx, r.Client, at("groups", g.ID, "/milestones"), nil, func(page []milestoneJSON) error {
		for _, m := range page {
			if m.GroupID != nil && *m.GroupID != g.ID || !r.isNew(own.milestones, "milestones", m.Title) {
				continue
			}
			r.count("milestones", 1)
			if err := out.Row(archive.MilestonePart, milestone(m)); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("milestones", g.Path))
	if err := r.forgive("milestones", err); err != nil {
		return err
	}
	if err := r.groupBoards(ctx, g, known, out); err != nil {
		return err
	}
	if err := r.forgive("badges", r.badges(ctx, at("groups", g.ID, "/badges"), "group", out)); err != nil {
		return err
	}
	if err := r.groupMembers(ctx, g, digests, out); err != nil {
		return err
	}
	return r.variables(ctx, at("groups", g.ID, "/variables"))
}

// refer returns the group of the file that has a label or milestone; 0 for one above
// all of them.
func (r *Reader) refer(g Place, title string, known map[string]groupNames, of func(groupNames) names) *archive.Reference {
	for path := g.Path; ; path = path[:strings.LastIndexByte(path, '/')] {
		if of(known[path]).has(title) {
			return &archive.Reference{Group: known[path].number, Title: clean(title)}
		}
		if path == r.FullPath || !strings.Contains(path, "/") {
			return &archive.Reference{Title: clean(title)}
		}
	}
}

// groupBoards writes the boards of a group. Their assignees are left out: groups have no
// list of users to refer to.
func (r *Reader) groupBoards(ctx context.Context, g Place, known map[string]groupNames, out Output) error {
	labels, milestones := func(n groupNames) names { return n.labels }, func(n groupNames) names { return n.milestones }
	err := list(ctx, r.Client, at("groups", g.ID, "/boards"), nil, func(page []boardJSON) error {
		for _, b := range page {
			row := archive.BoardRow{Name: clean(b.Name), HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Weight: b.Weight, CreatedAt: utc(r.o.Now())}
			if b.Milestone != nil {
				row.Milestone = r.refer(g, b.Milestone.Title, known, milestones)
			}
			for _, l := range b.Labels {
				row.Labels = append(row.Labels, clean(l.Name))
			}
			for _, l := range b.Lists {
				switch {
				case l.Label != nil:
					row.Lists = append(row.Lists, archive.ListRow{Label: r.refer(g, l.Label.Name, known, labels)})
				case l.Milestone != nil:
					row.Lists = append(row.Lists, archive.ListRow{Milestone: r.refer(g, l.Milestone.Title, known, milestones)})
				case l.Assignee != nil:
					r.Skip(Skipped{Relation: "boards", Name: cut(g.Path+", "+b.Name, maxName), Why: "Lists of assignees in boards of groups are not carried over."})
				}
			}
			r.count("boards", 1)
			if err := out.Row(archive.BoardPart, row); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("boards", g.Path))
	return r.forgive("boards", err)
}

// groupMembers writes the direct members of a group.
func (r *Reader) groupMembers(ctx context.Context, g Place, digests map[int64]string, out Output) error {
	if !r.Members {
		return nil
	}
	err := list(ctx, r.Client, at("groups", g.ID, "/members"), nil, func(page []memberJSON) error {
		if r.Digests {
			found := make([]string, len(page))
			err := fanOut(ctx, len(page), func(ctx context.Context, i int) error {
				if _, known := digests[page[i].ID]; known || page[i].ID <= 0 {
					return nil
				}
				u, err := one[userJSON](ctx, r.Client, at("users", page[i].ID, ""), nil)
				if err != nil && !isFailure(err) {
					return err
				}
				found[i] = digest(u)
				return nil
			})
			if err != nil {
				return err
			}
			if len(digests) > r.limits.Names { // they are read again
				clear(digests)
			}
			for i, m := range page {
				if digests[m.ID] == "" {
					digests[m.ID] = found[i]
				}
			}
		}
		for _, m := range page {
			if m.AccessLevel != 5 && !validLevel(m.AccessLevel) {
				r.Skip(Skipped{Relation: "members", Name: cut(m.Username, maxName), Why: fmt.Sprintf("The access level %d is not known.", m.AccessLevel)})
				continue
			}
			r.count("members", 1)
			err := out.Row(archive.MemberPart, archive.MemberRow{
				PersonRow:   archive.PersonRow{Username: cut(m.Username, maxName), Name: cut(m.Name, maxName), Email: digests[m.ID]},
				AccessLevel: m.AccessLevel, ExpiresAt: cut(m.ExpiresAt, 10), CreatedAt: utc(m.CreatedAt),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}, r.bad("members", g.Path))
	return r.forgive("members", err)
}

// maxProjects is the maximum number of projects of a group.
const maxProjects = 20_000

// projects finds the projects of the groups, which are imported after them.
func (r *Reader) projects(ctx context.Context) error {
	places := map[string]bool{}
	for _, g := range r.Groups {
		places[g.Path] = true
	}
	seen := map[int64]bool{}
	query := url.Values{"include_subgroups": {"true"}, "with_shared": {"false"}, "order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"}}
	return list(ctx, r.Client, at("groups", r.ID, "/projects"), query, func(page []projectJSON) error {
		for _, p := range page {
			above := p.FullPath[:max(0, strings.LastIndexByte(p.FullPath, '/'))]
			if seen[p.ID] || p.ID <= 0 {
				continue
			}
			seen[p.ID] = true
			if !CheckPath(p.FullPath) || !places[above] || len(r.Projects) >= maxProjects {
				r.Skip(Skipped{Relation: "projects", Name: cut(p.FullPath, maxName), Why: "The path is not one of a project in these groups, or there are too many projects."})
				continue
			}
			r.Projects = append(r.Projects, Place{ID: p.ID, Path: p.FullPath, Name: cut(p.Name, maxName), Visibility: cut(p.Visibility, 20)})
		}
		r.count("projects", len(page))
		return nil
	}, r.bad("projects", ""))
}

// ListGroups lists groups of the source in which the owner of the token is a member, at
// most most of them.
func (c *Client) ListGroups(ctx context.Context, search string, most int) ([]Place, error) {
	query := url.Values{"min_access_level": {"10"}, "order_by": {"path"}, "per_page": {"100"}}
	if search != "" {
		query.Set("search", search)
	}
	var places []Place
	err := list(ctx, c, "/groups", query, func(page []groupJSON) error {
		for _, g := range page {
			if CheckPath(g.FullPath) && g.ID > 0 {
				places = append(places, Place{ID: g.ID, Path: g.FullPath, Name: cut(g.Name, maxName), Visibility: cut(g.Visibility, 20)})
			}
		}
		return enough(len(places), most)
	}, func(string) {})
	return upTo(places, most, err)
}

// ListProjects lists projects of the source in which the owner of the token is a member,
// at most most of them.
func (c *Client) ListProjects(ctx context.Context, search string, most int) ([]Place, error) {
	query := url.Values{"membership": {"true"}, "simple": {"true"}, "order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"}}
	if search != "" {
		query.Set("search", search)
	}
	var places []Place
	err := list(ctx, c, "/projects", query, func(page []projectJSON) error {
		for _, p := range page {
			if CheckPath(p.FullPath) && p.ID > 0 {
				places = append(places, Place{ID: p.ID, Path: p.FullPath, Name: cut(p.Name, maxName), Visibility: cut(p.Visibility, 20)})
			}
		}
		return enough(len(places), most)
	}, func(string) {})
	return upTo(places, most, err)
}

// errEnough ends a list of which no more is needed.
var errEnough = &Failure{Text: "enough"}

func enough(have, most int) error {
	if have >= most {
		return errEnough
	}
	return nil
}

func upTo(places []Place, most int, err error) ([]Place, error) {
	if err == errEnough {
		err = nil
	}
	return places[:min(len(places), most)], err
}
