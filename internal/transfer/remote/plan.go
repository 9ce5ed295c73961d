package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/transfer/archive"
)

func label(l labelJSON, now func() time.Time) archive.LabelRow {
	at := utc(now())
	return archive.LabelRow{Name: clean(l.Name), Color: l.Color, Description: clean(l.Description), CreatedAt: at, UpdatedAt: at}
}

func milestone(m milestoneJSON) archive.MilestoneRow {
	return archive.MilestoneRow{
		IID: m.IID, Title: clean(m.Title), Description: clean(m.Description), State: m.State, StartDate: m.StartDate, DueDate: m.DueDate, CreatedAt: utc(m.CreatedAt), UpdatedAt: utc(m.UpdatedAt),
	}
}

// oldestFirst are the parameters of a list to which new items are added at its end.
func oldestFirst() url.Values {
	return url.Values{"scope": {"all"}, "state": {"all"}, "order_by": {"created_at"}, "sort": {"asc"}, "per_page": {"20"}}
}

// issuable returns what issues and merge requests share.
func (r *Reader) issuable(i *issuableJSON, awards []awardJSON) archive.IssuableRow {
	row := archive.IssuableRow{
		IID: i.IID, Title: clean(i.Title), Description: r.text(i.Description), State: i.State, DiscussionLocked: i.DiscussionLocked, Author: r.person(i.Author),
		Assignees: r.persons(i.Assignees), Labels: []string{}, TimeEstimate: i.TimeStats.Estimate, TimeSpent: i.TimeStats.Spent, AwardEmoji: r.awards(awards),
		CreatedAt: utc(i.CreatedAt), UpdatedAt: utc(i.UpdatedAt), ClosedAt: utcOrNull(i.ClosedAt), ClosedBy: r.person(i.ClosedBy),
	}
	for _, l := range i.Labels {
		row.Labels = append(row.Labels, clean(l))
	}
	if i.Milestone != nil {
		row.Milestone = clean(i.Milestone.Title)
	}
	if i.TimeStats.Spent != 0 {
		r.Skip(Skipped{Relation: "timelogs", Name: cut(i.Title, maxName), Why: "The total of the time spent is carried over, but not its single entries."})
	}
	return row
}

func (r *Reader) awards(list []awardJSON) (rows []archive.AwardRow) {
	for _, a := range list {
		if user := r.person(a.User); user != 0 {
			rows = append(rows, archive.AwardRow{Name: clean(a.Name), User: user, CreatedAt: utc(a.CreatedAt)})
		}
	}
	return rows
}

// below is what belongs to one issue or merge request.
type below struct {
	discussions []discussionJSON
	awards      []awardJSON
	events      map[string][]eventJSON // by kind

	links []linkJSON

	versions  []versionJSON
	approvals approvalsJSON
	reviewers []reviewerJSON
	commits   []commitJSON
	closes    []linkJSON
	lost      []Skipped // what is missing, without the name and page of the object
}

// bad returns the function for items of a list that cannot be read.
func (b *below) bad(relation string) func(why string) {
	return func(why string) {
		if n := len(b.lost); n == 0 || b.lost[n-1].Relation != relation { // one of them is enough
			b.lost = append(b.lost, Skipped{Relation: relation, Why: "The answer of the source cannot be read: " + why})
		}
	}
}

// forgive returns nil for an error of a list that leaves the rest of the object as it is,
// and notes it. Many versions do not have some of the lists: only comments are missed
// then.
func (b *below) forgive(relation string, err error) error {
	f, ok := err.(*Failure)
	switch {
	case err == nil, absent(err) && f.Status == http.StatusNotFound && relation != "notes":
		return nil
	case !ok || !isFailure(err) || f.limit:
		return err
	}
	b.lost = append(b.lost, Skipped{Relation: relation, Why: f.Text})
	return nil
}

// readBelow reads a list of an issue or merge request.
func readBelow[T any](ctx context.Context, r *Reader, b *below, relation, path string) ([]T, error) {
	items, err := all[T](ctx, r.Client, path, b.bad(relation))
	return items, b.forgive(relation, err)
}

// common reads what issues and merge requests share.
func (r *Reader) common(ctx context.Context, path string, b *below) error {
	var err error
	if b.discussions, err = readBelow[discussionJSON](ctx, r, b, "notes", path+"/discussions"); err != nil {
		return err
	}
	if b.awards, err = readBelow[awardJSON](ctx, r, b, "award_emoji", path+"/award_emoji"); err != nil {
		return err
	}
	b.events = map[string][]eventJSON{}
	for _, kind := range []string{"label", "state", "milestone"} {
		if b.events[kind], err = readBelow[eventJSON](ctx, r, b, "resource_events", path+"/resource_"+kind+"_events"); err != nil {
			return err
		}
	}
	return nil
}

// issues writes issues with their notes, links and events.
func (r *Reader) issues(ctx context.Context, out Output) error {
	done := map[int64]bool{}
	err := list(ctx, r.Client, r.under("/issues"), oldestFirst(), func(page []issueJSON) error {
		page = slices.DeleteFunc(page, func(i issueJSON) bool { return r.foreign("issues", &i.issuableJSON, done) })
		parts := make([]below, len(page))
		err := fanOut(ctx, len(page), func(ctx context.Context, n int) error {
			path, b := r.under("/issues/"+number(page[n].IID)), &parts[n]
			if err := r.common(ctx, path, b); err != nil {
				return err
			}
			var err error
			if b.links, err = readBelow[linkJSON](ctx, r, b, "issue_links", path+"/links"); err != nil {
				return err
			}
			b.events["weight"], err = readBelow[eventJSON](ctx, r, b, "resource_events", path+"/resource_weight_events")
			return err
		})
		if err != nil {
			return err
		}
		for n := range page {
			if err := r.issue(&page[n], &parts[n], out); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("issues", ""))
	return r.forgive("issues", err)
}

// foreign reports whether an issue or merge request is not one of the project, or was
// read already: lists can change while they are read.
func (r *Reader) foreign(relation string, i *issuableJSON, done map[int64]bool) bool {
	if i.IID <= 0 || i.ProjectID != 0 && i.ProjectID != r.ID {
		r.addCounts(relation, Counts{Source: 1})
		r.Skip(Skipped{Relation: relation, Name: cut(i.Title, maxName), Why: "The source says that it belongs to another project."})
		return true
	}
	if done[i.IID] {
		return true
	}
	done[i.IID] = true
	return false
}

// incomplete reports what of an issue or merge request is missing.
func (r *Reader) incomplete(path string, i *issuableJSON, b *below) {
	for _, lost := range b.lost {
		lost.Name, lost.Path = cut(i.Title, maxName), r.page(path+"/"+number(i.IID))
		r.Skip(lost)
	}
}

func (r *Reader) issue(i *issueJSON, b *below, out Output) error {
	row := archive.IssueRow{IssuableRow: r.issuable(&i.issuableJSON, b.awards), Type: i.IssueType, Confidential: i.Confidential, DueDate: i.DueDate, Weight: i.Weight, RelativePosition: 0}
	if !slices.Contains([]string{"issue", "incident", "task", "test_case"}, row.Type) {
		row.Type = "issue"
	}
	if err := out.Row(archive.IssuePart, row); err != nil {
		return err
	}
	r.count("issues", 1)
	r.incomplete("issues", &i.issuableJSON, b)
	for _, l := range b.links {
		switch {
		case l.ProjectID != r.ID:
			r.Skip(Skipped{Relation: "issue_links", Name: cut(i.Title, maxName), Path: r.page("issues/" + number(i.IID)), Why: "Links to issues of other projects are not carried over."})
			continue
		case l.LinkType == "is_blocked_by", l.LinkType == "relates_to" && l.IID < i.IID:
			continue // it is read with the other issue
		}
		link := archive.IssueLinkRow{Source: i.IID, Target: l.IID, LinkType: l.LinkType, CreatedAt: utc(l.CreatedAt), UpdatedAt: utc(l.UpdatedAt)}
		if err := out.Row(archive.IssueLinkPart, link); err != nil {
			return err
		}
	}
	on := archive.Noteable{Issue: i.IID}
	if err := r.notes(on, b.discussions, out); err != nil {
		return err
	}
	return r.events(on, b.events, out)
}

// events writes resource events in the order of their time.
func (r *Reader) events(on archive.Noteable, events map[string][]eventJSON, out Output) error {
	var rows []archive.EventRow
	for _, kind := range []string{"label", "milestone", "state", "weight"} {
		for _, e := range events[kind] {
			row := archive.EventRow{Noteable: on, Kind: kind, Action: e.Action, User: r.person(e.User), Weight: e.Weight, CreatedAt: utc(e.CreatedAt)}
			switch {
			case kind == "state":
				row.Action = e.State
			case kind == "label" && e.Label != nil:
				row.Label = clean(e.Label.Name)
			case kind == "milestone" && e.Milestone != nil:
				row.Milestone = clean(e.Milestone.Title)
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b archive.EventRow) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, row := range rows {
		if err := out.Row(archive.EventPart, row); err != nil {
			return err
		}
	}
	return nil
}

// notes writes the notes of discussions in the order of their IDs.
func (r *Reader) notes(on archive.Noteable, discussions []discussionJSON, out Output) error {
	type entry struct {
		id int64
		archive.NoteRow
	}
	var rows []entry
	for _, d := range discussions {
		for i := range d.Notes {
			if row, ok := r.note(on, d.ID, &d.Notes[i]); ok {
				rows = append(rows, entry{d.Notes[i].ID, row})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b entry) int { return int(min(max(a.id-b.id, -1), 1)) })
	last := int64(-1)
	for _, row := range rows {
		if row.id == last && last > 0 {
			continue // the list changed while it was read
		}
		last = row.id
		if err := out.Row(archive.NotePart, row.NoteRow); err != nil {
			return err
		}
		r.count("notes", 1)
	}
	return nil
}

// The texts of system notes about mentions in the same project, and in any.
var (
	mentioned  = regexp.MustCompile(`^mentioned in (?:(issue) #(\d{1,15})|(merge request) !(\d{1,15})|commit ([0-9a-f]{40}))$`)
	isMention  = regexp.MustCompile(`^mentioned in (issue|merge request|commit|epic|incident|task) `)
	discussion = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
)

// note returns the row of a note. It is false for mentions elsewhere.
func (r *Reader) note(on archive.Noteable, thread string, n *noteJSON) (archive.NoteRow, bool) {
	row := archive.NoteRow{
		Noteable: on, Discussion: thread, Type: n.Type, Internal: n.Internal || n.Confidential, Author: r.person(n.Author), CommitSHA: n.CommitID, CreatedAt: utc(n.CreatedAt), UpdatedAt: utc(n.UpdatedAt),
	}
	if !discussion.MatchString(thread) {
		row.Discussion = "0" + strconv.FormatInt(max(n.ID, 0), 16)
	}
	if n.System {
		row.System, row.Type, row.Body = "change", "", clean(n.Body)
		if isMention.MatchString(n.Body) {
			found := mentioned.FindStringSubmatch(n.Body)
			if found == nil {
				r.Skip(Skipped{Relation: "notes", Name: cut(n.Body, maxName), Why: "Mentions in other projects are not carried over."})
				return row, false
			}
			issue, _ := strconv.ParseInt(found[2], 10, 64)
			request, _ := strconv.ParseInt(found[4], 10, 64)
			row.System, row.Source = "cross_reference", &archive.SourceRow{Issue: issue, MergeRequest: request, Commit: found[5]}
		}
		return row, true
	}
	row.Body = r.text(n.Body)
	if row.Type != plan.DiscussionNote && row.Type != plan.DiffNote {
		row.Type = ""
	}
	if n.Resolved {
		row.ResolvedAt, row.ResolvedBy = utcOrNull(n.ResolvedAt), r.person(n.ResolvedBy)
		if row.ResolvedAt == nil {
			at := row.UpdatedAt
			row.ResolvedAt = &at
		}
	}
	if n.Position != nil && row.Type == plan.DiffNote {
		row.Position = position(n.Position)
	}
	for _, s := range n.Suggestions {
		g := archive.SuggestionRow{FromLine: s.FromLine, ToLine: s.ToLine, FromContent: clean(s.FromContent), ToContent: clean(s.ToContent)}
		if s.Applied {
			at := row.UpdatedAt
			g.AppliedAt = &at
		}
		row.Suggestions = append(row.Suggestions, g)
	}
	if row.Type == plan.DiffNote && row.Position == nil {
		row.Type = plan.DiscussionNote
	}
	return row, true
}

// position returns a position as export files have it.
func position(p *positionJSON) json.RawMessage {
	at := diffnote.Position{
		BaseSHA: p.BaseSHA, StartSHA: p.StartSHA, HeadSHA: p.HeadSHA, Type: diffnote.PositionType(p.Type), OldPath: clean(p.OldPath), NewPath: clean(p.NewPath), OldLine: p.OldLine, NewLine: p.NewLine,
	}
	if p.Range != nil {
		point := func(q pointJSON) diffnote.LinePoint {
			out := diffnote.LinePoint{Code: clean(q.Code), Type: clean(q.Type), OldLine: q.OldLine, NewLine: q.NewLine}
			if out.Type == "new" {
				out.OldLine = nil
			} else if out.Type == "old" {
				out.NewLine = nil
			}
			return out
		}
		at.Range = &diffnote.LineRange{Start: point(p.Range.Start), End: point(p.Range.End)}
	}
	path := at.NewPath
	if path == "" {
		path = at.OldPath
	}
	if at.Type == diffnote.OnText && at.Range != nil {
		at.Code = at.Range.End.Code
	}
	for value, given := range map[*int64]*int64{&at.Width: p.Width, &at.Height: p.Height} {
		if given != nil {
			*value = *given
		}
	}
	for value, given := range map[*float64]*float64{&at.X: p.X, &at.Y: p.Y} {
		if given != nil {
			*value = *given
		}
	}
	if path == "" || at.HeadSHA == "" {
		return nil
	}
	text, err := json.Marshal(at)
	if err != nil {
		return nil
	}
	return text
}

// merges writes merge requests with their versions, reviews, notes and events.
func (r *Reader) merges(ctx context.Context, out Output) error {
	done := map[int64]bool{}
	err := list(ctx, r.Client, r.under("/merge_requests"), oldestFirst(), func(page []mergeJSON) error {
		page = slices.DeleteFunc(page, func(m mergeJSON) bool { return r.foreign("merge_requests", &m.issuableJSON, done) })
		parts := make([]below, len(page))
		err := fanOut(ctx, len(page), func(ctx context.Context, n int) error {
			return r.review(ctx, r.under("/merge_requests/"+number(page[n].IID)), &page[n], &parts[n])
		})
		if err != nil {
			return err
		}
		for n := range page {
			if err := r.merge(&page[n], &parts[n], out); err != nil {
				return err
			}
		}
		return nil
	}, r.bad("merge_requests", ""))
	return r.forgive("merge_requests", err)
}

// review reads what belongs to a merge request.
func (r *Reader) review(ctx context.Context, path string, m *mergeJSON, b *below) error {
	if err := r.common(ctx, path, b); err != nil {
		return err
	}
	var err error
	if b.versions, err = readBelow[versionJSON](ctx, r, b, "merge_request_versions", path+"/versions"); err != nil {
		return err
	}
	if b.commits, err = readBelow[commitJSON](ctx, r, b, "merge_request_commits", path+"/commits"); err != nil {
		return err
	}
	if b.closes, err = readBelow[linkJSON](ctx, r, b, "closes_issues", path+"/closes_issues"); err != nil {
		return err
	}
	if len(m.Reviewers) > 0 {
		if b.reviewers, err = readBelow[reviewerJSON](ctx, r, b, "reviewers", path+"/reviewers"); err != nil {
			return err
		}
	}
	b.approvals, err = one[approvalsJSON](ctx, r.Client, path+"/approvals", nil)
	return b.forgive("approvals", err)
}

func (r *Reader) merge(m *mergeJSON, b *below, out Output) error {
	row := archive.MergeRequestRow{
		IssuableRow: r.issuable(&m.issuableJSON, b.awards), Draft: m.Draft || m.WorkInProgress, SourceBranch: clean(m.SourceBranch), TargetBranch: clean(m.TargetBranch),
		Fork: m.SourceProjectID == nil || *m.SourceProjectID != r.ID, SHA: m.SHA, Squash: m.Squash, RemoveSourceBranch: m.RemoveSourceBranch, AllowCollaboration: m.AllowCollaboration,
		MergeCommitSHA: m.MergeCommitSHA, SquashCommitSHA: m.SquashCommitSHA, MergedAt: utcOrNull(m.MergedAt), PreparedAt: utcOrNull(m.PreparedAt),
		Reviewers: []archive.ReviewerRow{}, Approvals: []archive.ApprovalRow{}, Versions: []archive.VersionRow{}, Commits: []string{},
	}
	if row.State == "locked" { // it was being merged
		row.State = "opened"
	}
	if row.MergedBy = r.person(m.MergedBy); row.MergedBy == 0 && row.State == "merged" {
		row.MergedBy = r.person(m.MergeUser)
	}
	slices.SortStableFunc(b.versions, func(v, w versionJSON) int { return int(min(max(v.ID-w.ID, -1), 1)) })
	for _, v := range b.versions {
		if v.HeadSHA == "" {
			continue
		}
		files, _ := strconv.ParseInt(strings.TrimSuffix(v.RealSize, "+"), 10, 32)
		row.Versions = append(row.Versions, archive.VersionRow{HeadSHA: v.HeadSHA, BaseSHA: v.BaseSHA, StartSHA: v.StartSHA, Files: max(files, 0), CreatedAt: utc(v.CreatedAt)})
	}
	if n := len(row.Versions); n > 0 && row.SHA == "" {
		row.SHA = row.Versions[n-1].HeadSHA
	}
	seen := map[archive.Person]bool{}
	for _, v := range b.reviewers {
		if user := r.person(v.User); user != 0 && !seen[user] {
			seen[user] = true
			row.Reviewers = append(row.Reviewers, archive.ReviewerRow{User: user, State: reviewState(v.State), CreatedAt: utc(v.CreatedAt)})
		}
	}
	for i := range m.Reviewers {
		if user := r.person(&m.Reviewers[i]); user != 0 && !seen[user] {
			seen[user] = true
			row.Reviewers = append(row.Reviewers, archive.ReviewerRow{User: user, State: "unreviewed", CreatedAt: row.CreatedAt})
		}
	}
	for _, a := range b.approvals.ApprovedBy {
		if user := r.person(a.User); user != 0 {
			at := a.ApprovedAt
			if at.IsZero() { // of older servers
				at = row.UpdatedAt
			}
			row.Approvals = append(row.Approvals, archive.ApprovalRow{User: user, CreatedAt: utc(at)})
		}
	}
	for _, c := range b.commits {
		row.Commits = append(row.Commits, c.ID)
	}
	for _, i := range b.closes {
		if i.ProjectID == r.ID && i.IID > 0 {
			row.Issues = append(row.Issues, archive.NamedIssueRow{IID: i.IID, Closes: true})
		}
	}
	if err := out.Row(archive.MergeRequestPart, row); err != nil {
		return err
	}
	r.count("merge_requests", 1)
	r.incomplete("merge_requests", &m.issuableJSON, b)
	if row.Fork {
		r.Skip(Skipped{Relation: "merge_requests", Name: cut(m.Title, maxName), Path: r.page("merge_requests/" + number(m.IID)), Why: "It comes from a fork: it keeps its diffs, but has no source project."})
	}
	on := archive.Noteable{MergeRequest: m.IID}
	if err := r.notes(on, b.discussions, out); err != nil {
		return err
	}
	return r.events(on, b.events, out)
}

// reviewState returns the state of a review.
func reviewState(state string) string {
	if slices.Contains([]string{"unreviewed", "review_started", "reviewed", "requested_changes", "approved", "unapproved"}, state) {
		return state
	}
	return "unreviewed"
}
