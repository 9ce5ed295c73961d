package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"svc/internal/transfer/archive"
)

// ProjectSteps returns the steps that read a project by its full path.
func (r *Reader) ProjectSteps(path string) []Step {
	return []Step{
		{"project", func(ctx context.Context, out Output) error { return r.project(ctx, path, out) }},
		{"repository", r.repository},
		{"settings", r.settings},
		{"members", r.members},
		{"planning", r.planning},
		{"protected_refs", r.protected},
		{"boards", r.boards},
		{"issues", r.issues},
		{"merge_requests", r.merges},
		{"releases", r.releases},
		{"snippets", r.snippets},
		{"ci", r.ci},
		{"uploads", r.uploads},
		{"users", r.users},
	}
}

// under returns a path of the API below the project.
func (r *Reader) under(rest string) string { return at("projects", r.ID, rest) }

// page returns the path of a page of the project at the source.
func (r *Reader) page(rest string) string { return "/" + r.FullPath + "/-/" + rest }

// FindProject looks a project up. Failure.
func (c *Client) FindProject(ctx context.Context, path string) (Place, error) {
	p, err := one[projectJSON](ctx, c, "/projects/"+url.PathEscape(path), nil)
	if err != nil {
		return Place{}, err
	}
	if p.ID <= 0 {
		return Place{}, fail("The source does not answer like a server of the v4 API.")
	}
	return Place{ID: p.ID, Path: path, Name: cut(p.Name, maxName), Visibility: cut(p.Visibility, 20)}, nil
}

func (r *Reader) project(ctx context.Context, path string, _ Output) error {
	p, err := r.FindProject(ctx, path)
	if err != nil {
		return err
	}
	parts, ok := splitFullPath(path)
	if !ok {
		return fail("The path of the project is not valid.")
	}
	r.ID, r.Name, r.FullPath, r.Path = p.ID, p.Name, path, parts[len(parts)-1]
	return nil
}

// repository writes the repository and the wiki.
func (r *Reader) repository(ctx context.Context, out Output) error {
	err := out.File(archive.RepositoryPart, "", func(w io.Writer) (ok bool, err error) {
		r.Branch, ok, err = r.bundle(ctx, r.FullPath, w, r.oddRef)
		return ok, err
	})
	if isFailure(err) && r.repositoryOff(ctx) {
		r.Branch = ""
		r.Skip(Skipped{Relation: "repository", Why: "The repository is disabled at the source."})
		err = nil
	}
	if err != nil {
		return err
	}
	return r.wiki(ctx, out)
}

// oddRef reports a branch or tag that is left out.
func (r *Reader) oddRef(ref string) {
	r.Skip(Skipped{Relation: "repository", Name: cut(ref, maxName), Why: "Git takes the name for that of another ref or for a commit ID."})
}

// repositoryOff reports whether the source says that the project has no repository.
func (r *Reader) repositoryOff(ctx context.Context) bool {
	p, err := one[projectJSON](ctx, r.Client, r.under(""), nil)
	return err == nil && p.Repository == "disabled"
}

func (r *Reader) wiki(ctx context.Context, out Output) error {
	err := out.File(archive.WikiPart, "", func(w io.Writer) (ok bool, err error) {
		r.WikiBranch, ok, err = r.bundle(ctx, r.FullPath+".wiki", w, nil)
		return ok, err
	})
	if isFailure(err) {
		r.WikiBranch = ""
		r.Skip(Skipped{Relation: "wiki", Path: r.page("wikis/home"), Why: err.Error()})
		return nil
	}
	return err
}

// settings writes the project itself and its avatar.
func (r *Reader) settings(ctx context.Context, out Output) error {
	fields, err := one[fieldsJSON](ctx, r.Client, r.under(""), nil)
	if err != nil {
		return err
	}
	p, err := one[projectJSON](ctx, r.Client, r.under(""), nil)
	if err != nil {
		return err
	}
	row := archive.ProjectRow{
		Description: cut(p.Description, 2000), Visibility: p.Visibility, Archived: p.Archived, Topics: p.Topics, DefaultBranch: r.Branch, WikiBranch: r.WikiBranch,
		CreatedAt: utc(p.CreatedAt), Settings: r.Settings(fields),
	}
	if row.Topics == nil {
		row.Topics = p.TagList
	}
	row.Topics = slices.DeleteFunc(slices.Clone(row.Topics), func(t string) bool { return t == "" || len(t) > 255 || t != clean(t) })
	row.Topics = row.Topics[:min(len(row.Topics), 20)]
	if !slices.Contains([]string{"private", "internal", "public"}, row.Visibility) {
		row.Visibility = "private"
	}
	rules, err := one[fieldsJSON](ctx, r.Client, r.under("/push_rule"), nil)
	if err == nil && len(rules) > 0 {
		row.PushRules = r.Rules(rules)
	} else if err != nil && !absent(err) && !isFailure(err) {
		return err
	}
	if err := out.Row(archive.ProjectPart, row); err != nil {
		return err
	}
	return r.avatar(ctx, "projects", r.ID, p.AvatarURL, out)
}

// maxAvatar is the maximum size of an avatar in bytes.
const maxAvatar = 200 << 10

// avatar writes the avatar of a group or project.
func (r *Reader) avatar(ctx context.Context, kind string, id int64, address string, out Output) error {
	if address == "" {
		return nil
	}
	var image bytes.Buffer
	err := r.get(ctx, at(kind, id, "/avatar"), nil, maxAvatar, func(a answer) error {
		image.Reset()
		_, err := io.Copy(&image, a.body)
		return err
	})
	ends := map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
	end := ends[http.DetectContentType(image.Bytes())]
	if isFailure(err) || err == nil && end == "" {
		why := "It is not a PNG, JPEG, GIF or WebP image."
		if err != nil {
			why = err.Error()
		}
		r.Skip(Skipped{Relation: "avatar", Why: why})
		return nil
	}
	if err != nil {
		return err
	}
	return out.File(archive.AvatarPart, end, func(w io.Writer) (bool, error) {
		_, err := w.Write(image.Bytes())
		return true, err
	})
}

// members writes the direct members.
func (r *Reader) members(ctx context.Context, out Output) error {
	if !r.Members {
		return nil
	}
	err := list(ctx, r.Client, r.under("/members"), nil, func(page []memberJSON) error {
		for _, m := range page {
			if !validLevel(m.AccessLevel) {
				r.Skip(Skipped{Relation: "members", Name: cut(m.Username, maxName), Why: fmt.Sprintf("The access level %d is not known.", m.AccessLevel)})
				continue
			}
			user := r.person(&m.userJSON)
			if user == 0 {
				continue
			}
			row := archive.ProjectMemberRow{User: user, AccessLevel: m.AccessLevel, ExpiresAt: cut(m.ExpiresAt, 10), CreatedAt: utc(m.CreatedAt)}
			if err := out.Row(archive.MemberPart, row); err != nil {
				return err
			}
		}
		r.count("members", len(page))
		return nil
	}, r.bad("members", ""))
	return r.forgive("members", err)
}

func validLevel(level int64) bool { return slices.Contains([]int64{10, 15, 20, 30, 40, 50}, level) }

// planning writes labels and milestones, with those of the groups above.
func (r *Reader) planning(ctx context.Context, out Output) error {
	labels := names{}
	err := list(ctx, r.Client, r.under("/labels"), url.Values{"include_ancestor_groups": {"true"}}, func(page []labelJSON) error {
		for _, l := range page {
			if !r.isNew(labels, "labels", l.Name) {
				continue // the list changed while it was read
			}
			r.count("labels", 1)
			row := archive.ProjectLabelRow{LabelRow: label(l, r.o.Now), Priority: l.Priority, Inherited: l.IsProjectLabel != nil && !*l.IsProjectLabel}
			if err := out.Row(archive.LabelPart, row); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("labels", ""))
	if err := r.forgive("labels", err); err != nil {
		return err
	}
	titles := names{}
	err = list(ctx, r.Client, r.under("/milestones"), url.Values{"include_ancestors": {"true"}}, func(page []milestoneJSON) error {
		for _, m := range page {
			if !r.isNew(titles, "milestones", m.Title) {
				continue
			}
			r.count("milestones", 1)
			if err := out.Row(archive.MilestonePart, archive.ProjectMilestoneRow{MilestoneRow: milestone(m), Inherited: m.GroupID != nil}); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("milestones", ""))
	return r.forgive("milestones", err)
}

// protected writes protected branches and tags.
func (r *Reader) protected(ctx context.Context, out Output) error {
	for _, kind := range []string{"branch", "tag"} {
		relation := map[string]string{"branch": "protected_branches", "tag": "protected_tags"}[kind]
		found := names{}
		err := list(ctx, r.Client, r.under("/"+relation), nil, func(page []protectedJSON) error {
			for _, p := range page {
				if p.Inherited || !r.isNew(found, relation, p.Name) {
					continue
				}
				r.count(relation, 1)
				row := archive.ProtectedRow{Kind: kind, Name: clean(p.Name), AllowForcePush: p.AllowForcePush, CodeOwnerApproval: p.CodeOwnerApproval, CreatedAt: utc(r.o.Now())}
				for action, levels := range map[string][]accessJSON{"push": p.Push, "merge": p.Merge, "unprotect": p.Unprotect, "create": p.Create} {
					row.Access = append(row.Access, r.access(relation, p.Name, action, levels)...)
				}
				slices.SortStableFunc(row.Access, func(a, b archive.AccessRow) int { return strings.Compare(a.Action, b.Action) })
				if err := out.Row(archive.ProtectedPart, row); err != nil {
					return err
				}
			}
			return nil
		}, r.bad(relation, ""))
		if err := r.forgive(relation, err); err != nil {
			return err
		}
	}
	return nil
}

// access returns who may do something with a protected branch or tag. If only groups and
// deploy keys may, no one may: a rule must not become wider.
func (r *Reader) access(relation, name, action string, levels []accessJSON) (rows []archive.AccessRow) {
	for _, a := range levels {
		switch {
		case a.GroupID != nil, a.DeployKeyID != nil:
			r.Skip(Skipped{Relation: relation, Name: cut(name, maxName), Why: "Groups and deploy keys in the rule are not carried over."})
		case a.UserID != nil && *a.UserID > 0:
			if n := r.numberOf(Person{ID: *a.UserID}); n != 0 {
				rows = append(rows, archive.AccessRow{Action: action, User: n, AccessLevel: 40})
			}
		case a.AccessLevel != nil && slices.Contains([]int64{0, 30, 40, 60}, *a.AccessLevel):
			rows = append(rows, archive.AccessRow{Action: action, AccessLevel: *a.AccessLevel})
		}
	}
	if len(rows) == 0 && len(levels) > 0 {
		rows = []archive.AccessRow{{Action: action, AccessLevel: 0}}
		if action == "unprotect" {
			rows[0].AccessLevel = 40
		}
	}
	return rows
}

// boards writes boards and badges.
func (r *Reader) boards(ctx context.Context, out Output) error {
	err := list(ctx, r.Client, r.under("/boards"), nil, func(page []boardJSON) error {
		for _, b := range page {
			row := archive.ProjectBoardRow{
				Name: clean(b.Name), HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Assignee: r.person(b.Assignee), Weight: b.Weight, CreatedAt: utc(r.o.Now()),
			}
			if b.Milestone != nil {
				row.Milestone = clean(b.Milestone.Title)
			}
			for _, l := range b.Labels {
				row.Labels = append(row.Labels, clean(l.Name))
			}
			for _, l := range b.Lists {
				one := archive.ProjectListRow{}
				switch {
				case l.Label != nil:
					one.Label = clean(l.Label.Name)
				case l.Milestone != nil:
					one.Milestone = clean(l.Milestone.Title)
				default:
					one.Assignee = r.person(l.Assignee)
				}
				if one != (archive.ProjectListRow{}) {
					row.Lists = append(row.Lists, one)
				}
			}
			if err := out.Row(archive.BoardPart, row); err != nil {
				return err
			}
		}
		r.count("boards", len(page))
		return nil
	}, r.bad("boards", ""))
	if err := r.forgive("boards", err); err != nil {
		return err
	}
	return r.forgive("badges", r.badges(ctx, r.under("/badges"), "project", out))
}

func (r *Reader) badges(ctx context.Context, path, kind string, out Output) error {
	return list(ctx, r.Client, path, nil, func(page []badgeJSON) error {
		for _, b := range page {
			if b.Kind != "" && b.Kind != kind {
				continue // of a group above
			}
			row := archive.BadgeRow{Name: cut(b.Name, maxName), LinkURL: clean(b.LinkURL), ImageURL: clean(b.ImageURL), CreatedAt: utc(r.o.Now())}
			if err := out.Row(archive.BadgePart, row); err != nil {
				return err
			}
			r.count("badges", 1)
		}
		return nil
	}, r.bad("badges", ""))
}

// releases writes releases with their links.
func (r *Reader) releases(ctx context.Context, out Output) error {
	tags := names{}
	err := list(ctx, r.Client, r.under("/releases"), url.Values{"sort": {"asc"}, "order_by": {"created_at"}}, func(page []releaseJSON) error {
		for _, v := range page {
			if !r.isNew(tags, "releases", v.TagName) {
				continue
			}
			r.count("releases", 1)
			row := archive.ReleaseRow{
				Tag: clean(v.TagName), Name: clean(v.Name), Description: r.text(v.Description), Author: r.person(v.Author), Milestones: []string{}, Links: []archive.ReleaseLinkRow{},
				CreatedAt: utc(v.CreatedAt), UpdatedAt: utc(v.CreatedAt), ReleasedAt: utc(v.ReleasedAt),
			}
			if v.Commit != nil {
				row.SHA = v.Commit.ID
			}
			for _, m := range v.Milestones {
				row.Milestones = append(row.Milestones, clean(m.Title))
			}
			slices.SortStableFunc(v.Assets.Links, func(a, b releaseLinkJSON) int { return int(min(max(a.ID-b.ID, -1), 1)) })
			for _, l := range v.Assets.Links {
				link := archive.ReleaseLinkRow{Name: clean(l.Name), URL: clean(l.URL), LinkType: l.LinkType, CreatedAt: utc(v.CreatedAt)}
				if _, path, ok := strings.Cut(l.DirectAssetURL, "/-/releases/"+url.PathEscape(v.TagName)+"/downloads/"); ok {
					path = "/" + clean(path)
					link.Filepath = &path
				}
				if !slices.Contains([]string{"other", "runbook", "image", "package"}, link.LinkType) {
					link.LinkType = "other"
				}
				row.Links = append(row.Links, link)
			}
			if err := out.Row(archive.ReleasePart, row); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("releases", ""))
	return r.forgive("releases", err)
}

// snippets writes snippets with their repositories and notes.
func (r *Reader) snippets(ctx context.Context, out Output) error {
	next, done := int64(1), map[int64]bool{}
	err := list(ctx, r.Client, r.under("/snippets"), nil, func(page []snippetJSON) error {
		for _, s := range page {
			if done[s.ID] || s.ID <= 0 {
				continue
			}
			done[s.ID] = true
			ok, err := r.snippet(ctx, s, next, out)
			if err != nil {
				return err
			}
			if ok {
				next++
			}
		}
		return nil
	}, r.bad("snippets", ""))
	return r.forgive("snippets", err)
}

// snippet writes a snippet as the row with a number.
func (r *Reader) snippet(ctx context.Context, s snippetJSON, n int64, out Output) (bool, error) {
	row := archive.SnippetRow{
		Title: cut(s.Title, 255), Description: r.text(s.Description), Visibility: s.Visibility, Author: r.person(s.Author), CreatedAt: utc(s.CreatedAt), UpdatedAt: utc(s.UpdatedAt),
	}
	for _, f := range s.Files {
		row.Files = append(row.Files, cut(f.Path, 1000))
	}
	if len(row.Files) == 0 {
		row.Files = []string{cut(s.FileName, 1000)}
	}
	if strings.TrimSpace(row.Title) == "" {
		row.Title = "Untitled"
	}
	if row.Visibility != "internal" && row.Visibility != "public" {
		row.Visibility = "private"
	}
	skip := func(why string) (bool, error) {
		r.addCounts("snippets", Counts{Source: 1})
		r.Skip(Skipped{Relation: "snippets", Name: row.Title, Path: r.page("snippets/" + number(s.ID)), Why: why})
		return false, nil
	}
	if len(row.Description) > maxText || len(row.Files) > 1000 || slices.ContainsFunc(row.Files, func(f string) bool { return strings.TrimSpace(f) == "" }) {
		return skip("The snippet has no files, too many of them, or a text that is too long.")
	}
	why := ""
	err := out.File(archive.SnippetFilePart, number(n)+".bundle", func(w io.Writer) (ok bool, err error) {
		row.Branch, ok, err = r.bundle(ctx, r.FullPath+"/snippets/"+number(s.ID), w, nil)
		if !ok {
			why = "Its repository is empty."
		} else if len(row.Branch) > 255 { // checked here: a file that is stored needs its row
			why = "The name of its default branch is too long."
		}
		return why == "", err
	})
	if isFailure(err) {
		why = err.Error()
	}
	if isFailure(err) || err == nil && why != "" {
		return skip(why)
	}
	if err != nil {
		return false, err
	}
	awards, err := all[awardJSON](ctx, r.Client, r.under("/snippets/"+number(s.ID)+"/award_emoji"), r.bad("award_emoji", row.Title))
	if err := r.forgive("award_emoji", err); err != nil {
		return false, err
	}
	row.AwardEmoji = r.awards(awards)
	if err := out.Row(archive.SnippetPart, row); err != nil {
		return false, err
	}
	r.count("snippets", 1)
	notes, err := all[discussionJSON](ctx, r.Client, r.under("/snippets/"+number(s.ID)+"/discussions"), r.bad("notes", row.Title))
	if err := r.forgive("notes", err); err != nil {
		return false, err
	}
	return true, r.notes(archive.Noteable{Snippet: n}, notes, out)
}

// ci writes pipeline schedules and approval rules, and reports variables.
func (r *Reader) ci(ctx context.Context, out Output) error {
	err := list(ctx, r.Client, r.under("/pipeline_schedules"), nil, func(page []scheduleJSON) error {
		for _, s := range page {
			row := archive.ScheduleRow{Description: clean(s.Description), Ref: clean(s.Ref), Cron: clean(s.Cron), Timezone: clean(s.Timezone), CreatedAt: utc(s.CreatedAt), UpdatedAt: utc(s.UpdatedAt)}
			if err := out.Row(archive.SchedulePart, row); err != nil {
				return err
			}
		}
		r.count("pipeline_schedules", len(page))
		return nil
	}, r.bad("pipeline_schedules", ""))
	if err := r.forgive("pipeline_schedules", err); err != nil {
		return err
	}
	err = list(ctx, r.Client, r.under("/approval_rules"), nil, func(page []ruleJSON) error {
		for _, rule := range page {
			row := archive.ApprovalRuleRow{
				Name: clean(rule.Name), RuleType: rule.RuleType, ApprovalsRequired: rule.ApprovalsRequired, AllProtected: rule.AllProtected,
				Users: r.persons(rule.Users), ProtectedBranches: []string{}, CreatedAt: utc(r.o.Now()),
			}
			for _, b := range rule.ProtectedBranches {
				row.ProtectedBranches = append(row.ProtectedBranches, clean(b.Name))
			}
			if len(rule.Groups) > 0 {
				r.Skip(Skipped{Relation: "approval_rules", Name: cut(rule.Name, maxName), Why: "Groups in the rule are not carried over."})
			}
			if row.RuleType != "regular" && row.RuleType != "any_approver" {
				r.addCounts("approval_rules", Counts{Source: 1})
				r.Skip(Skipped{Relation: "approval_rules", Name: cut(rule.Name, maxName), Why: "Rules of this type are not carried over."})
				continue
			}
			r.count("approval_rules", 1)
			if err := out.Row(archive.ApprovalRulePart, row); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("approval_rules", ""))
	if err := r.forgive("approval_rules", err); err != nil {
		return err
	}
	return r.variables(ctx, r.under("/variables"))
}

// variables reports the names of variables, whose values stay where they are.
func (r *Reader) variables(ctx context.Context, path string) error {
	err := list(ctx, r.Client, path, nil, func(page []variableJSON) error {
		for _, v := range page {
			name := cut(v.Key, maxName)
			if v.Scope != "" && v.Scope != "*" {
				name += " (" + cut(v.Scope, maxName) + ")"
			}
			r.Skip(Skipped{Relation: "variables", Name: name, Why: "Values of variables are not carried over. Create the variable again."})
		}
		r.addCounts("variables", Counts{Source: int64(len(page))})
		return nil
	}, r.bad("variables", ""))
	return r.forgive("variables", err)
}

// uploads writes the files that texts link to.
func (r *Reader) uploads(ctx context.Context, out Output) error {
	if len(r.Files) == 0 {
		return nil
	}
	known := map[string]uploadJSON{} // by name, unless two have it
	err := list(ctx, r.Client, r.under("/uploads"), nil, func(page []uploadJSON) error {
		for _, u := range page {
			if _, twice := known[u.Filename]; twice {
				u = uploadJSON{}
			}
			if len(known) < maxFiles && len(u.Filename) <= maxFileName {
				known[u.Filename] = u
			}
		}
		return nil
	}, r.bad("uploads", ""))
	if err != nil && !isFailure(err) { // older servers have no such list
		return err
	}
	// The files of a directory of an export have ascending names.
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Secret, b.Secret) })
	for _, f := range r.Files {
		var size int64
		err := out.File(archive.UploadFilePart, f.Secret, func(w io.Writer) (bool, error) {
			return true, r.get(ctx, r.under("/uploads/"+f.Secret+"/"+url.PathEscape(f.Name)), nil, min(r.limits.File, maxUpload), func(a answer) (err error) {
				if size != 0 { // a part of it was written already
					return fail("The connection to the source was interrupted.")
				}
				size, err = io.Copy(w, a.body)
				return err
			})
		})
		name := cut(f.Name, 255)
		if strings.ContainsAny(name, "/\\\r\n") || strings.Trim(name, ". ") == "" {
			name = "file"
		}
		if isFailure(err) {
			r.addCounts("uploads", Counts{Source: 1})
			r.Skip(Skipped{Relation: "uploads", Name: name, Why: err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		about := known[f.Name]
		row := archive.UploadRow{Secret: f.Secret, Name: name, Size: size, Author: r.person(about.UploadedBy), CreatedAt: utc(about.CreatedAt)}
		if err := out.Row(archive.UploadPart, row); err != nil {
			return err
		}
		r.count("uploads", 1)
	}
	return nil
}

// The limits of texts and uploaded files, in bytes.
const (
	maxText   = 1 << 20
	maxUpload = 100 << 20
)
