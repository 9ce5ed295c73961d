package merge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/memo"
	"svc/internal/plan/listing"
)

// Among returns the merge requests among ids that the actor can see.
func (s *Service) Among(ctx context.Context, by actor.Actor, ids []int64) ([]*MergeRequest, error) {
	if len(ids) == 0 {
		return []*MergeRequest{}, nil
	}
	list, err := findAmong(ctx, s.DB, s.visible(by, nil), ids)
	if err != nil {
		return nil, fmt.Errorf("find merge requests: %w", err)
	}
	return list, s.fill(ctx, list...)
}

// CountWaiting counts, up to a limit, the open merge requests that the actor can see
// and that are assigned to them or wait for their review.
func (s *Service) CountWaiting(ctx context.Context, by actor.Actor, limit int) (int, error) {
	n, err := countWaiting(ctx, s.DB, s.visible(by, nil), by.ID, limit)
	if err != nil {
		return 0, fmt.Errorf("count merge requests of user %d: %w", by.ID, err)
	}
	return n, nil
}

// Section is a section of the start page of merge requests.
type Section string

// The sections. A merge request is in one of them at a time.
const (
	Returned           Section = "returned"            // own; a reviewer has commented or requested changes
	ReviewRequested    Section = "review_requested"    // waiting for the user's review
	AssignedToYou      Section = "assigned"            // own, without reviewers
	WaitingForAuthor   Section = "waiting_for_author"  // reviewed by the user
	WaitingForReview   Section = "waiting_for_reviews" // own; no reviewer has reviewed it
	ApprovedByYou      Section = "approved_by_you"
	ApprovedByOthers   Section = "approved_by_others" // own; all reviewers have approved
	MergedRecently     Section = "merged"
	mergedRecentlyDays         = 14
)

// Sections returns the sections in the order of the page.
func Sections() []Section {
	return []Section{
		Returned, ReviewRequested, AssignedToYou, WaitingForAuthor, WaitingForReview, ApprovedByYou, ApprovedByOthers, MergedRecently,
	}
}

// InSection is the first page of the merge requests of a section, most recently
// updated first.
type InSection struct {
	Section Section
	db.Page[*MergeRequest]
}

// Inbox lists the merge requests of the actor by section, up to a limit in each.
func (s *Service) Inbox(ctx context.Context, by actor.Actor, limit int) ([]InSection, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	var list []InSection
	var all []*MergeRequest
	for _, in := range Sections() {
		page, err := s.listSection(ctx, by, in, limit)
		if err != nil {
			return nil, fmt.Errorf("list merge requests: %w", err)
		}
		list, all = append(list, InSection{in, page}), append(all, page.Items...)
	}
	return list, s.fill(ctx, all...)
}

// listSection lists the merge requests of a section without related data.
func (s *Service) listSection(ctx context.Context, by actor.Actor, in Section, limit int) (db.Page[*MergeRequest], error) {
	ids, err := s.inSection(ctx, by.ID, in)
	if err != nil || ids != nil && len(ids) == 0 {
		return db.Page[*MergeRequest]{}, err
	}
	w := s.visible(by, nil)
	w.And(`NOT p.archived`)
	in.narrow(&w, by.ID, s.Now().Add(-mergedRecentlyDays*24*time.Hour), ids != nil)
	return listSection(ctx, s.DB, w, listing.Selection{Among: ids}, db.Paging{Limit: limit})
}

// inSection returns the IDs of the open merge requests of a user in a section; nil
// for MergedRecently, or if there are too many.
func (s *Service) inSection(ctx context.Context, userID int64, in Section) ([]int64, error) {
	if in == MergedRecently {
		return nil, nil
	}
	open, err := memo.Get(ctx, openKey(userID), func() (openRequests, error) { return findOpenRequests(ctx, s.DB, userID) })
	if err != nil {
		return nil, err
	}
	list := open.own
	if in == ReviewRequested || in == WaitingForAuthor || in == ApprovedByYou {
		list = open.reviews
	}
	if len(list) > db.MaxCandidates {
		return nil, nil
	}
	ids := []int64{}
	for _, r := range list {
		if r.in == in {
			ids = append(ids, r.id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// openKey is the cache key of openRequests for the duration of a page.
type openKey int64

// openRequests are the open merge requests that concern a user: own ones, which they
// created or are assigned to without being a reviewer, and reviews of merge requests
// of others.
type openRequests struct{ own, reviews []openRequest }

type openRequest struct {
	id int64
	in Section
}

// sectionOf returns the section of a merge request to review, by the state of the
// user's review.
func sectionOf(state ReviewerState) Section {
	switch state {
	case Reviewed, RequestedChanges:
		return WaitingForAuthor
	case Approved:
		return ApprovedByYou
	default:
		return ReviewRequested
	}
}
