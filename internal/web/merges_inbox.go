package web

import "svc/internal/merge"

// mergeInboxPage is the start page of merge requests: those that wait for the user,
// and those for which the user waits.
type mergeInboxPage struct {
	Active  []mergeSection
	Waiting []mergeSection
	Empty   bool
}

// mergeSection is a list of the start page.
type mergeSection struct {
	Name, Text string
	Rows       []mergeRow
	More       bool
	Total      int
}

func (mergeInboxPage) view() string  { return "user/merge_inbox" }
func (mergeInboxPage) title() string { return "Merge requests" }

// sectionTexts are the names of the sections.
func sectionTexts() map[merge.Section][2]string {
	return map[merge.Section][2]string{
		merge.Returned:         {"Returned to you", "Reviewers left feedback or requested changes."},
		merge.ReviewRequested:  {"Review requested", "You were asked to review these."},
		merge.AssignedToYou:    {"Your merge requests", "You are the author or the assignee, and there is no reviewer yet."},
		merge.WaitingForAuthor: {"Waiting for the author", "You reviewed these, or requested changes."},
		merge.WaitingForReview: {"Waiting for reviewers", "Yours; the reviewers have not finished."},
		merge.ApprovedByYou:    {"Approved by you", "You reviewed and approved these."},
		merge.ApprovedByOthers: {"Approved by others", "Yours; all reviewers approved."},
		merge.MergedRecently:   {"Merged recently", "Merged in the last two weeks; you are the author, an assignee or a reviewer."},
	}
}

func (w *Web) mergeInbox(v *visit) error {
	const most = 20
	sections, err := w.Merges.Inbox(v, v.actor, most)
	if err != nil {
		return err
	}
	var all []*merge.MergeRequest
	for _, s := range sections {
		all = append(all, s.Items...)
	}
	rows := newMergeRows(all, true)
	if err := w.fillStates(v, rows); err != nil {
		return err
	}
	p := mergeInboxPage{Empty: len(rows) == 0}
	for _, s := range sections {
		text, n := sectionTexts()[s.Section], len(s.Items)
		one := mergeSection{Name: text[0], Text: text[1], Rows: rows[:n:n], More: s.More, Total: n}
		rows = rows[n:]
		switch s.Section {
		case merge.Returned, merge.ReviewRequested, merge.AssignedToYou:
			p.Active = append(p.Active, one)
		default:
			p.Waiting = append(p.Waiting, one)
		}
	}
	return v.show(p)
}
