// Package listing selects, sorts and counts issues and merge requests. It has the
// conditions that both kinds of lists share, and finds the rows of a page without
// reading the whole list. The caller adds the condition on what the actor can see.
package listing

import (
	"time"
)

// Table is a table of issues or merge requests, by its singular name. The names of
// related tables start with it.
type Table string

// The tables.
const (
	Issues        Table = "issue"
	MergeRequests Table = "merge_request"
)

// states returns the states of the rows of a table.
func (t Table) states() []State {
	if t == MergeRequests {
		return []State{Opened, Closed, Merged}
	}
	return []State{Opened, Closed}
}

// State is the state of an issue or merge request.
type State string

// The states of issues. Merge requests can also be merged.
const (
	Opened State = "opened"
	Closed State = "closed"
	Merged State = "merged"
)

// Relation is a relation between users and an issue or merge request.
type Relation string

// The relations.
const (
	Assignees Relation = "assignees"
	Reviewers Relation = "reviewers" // merge requests only
)

// Table returns the table with the users of a relation.
func (r Relation) Table(of Table) string { return string(of) + "_" + string(r) }

// Special values of filters by name or ID.
const (
	None     = "None"
	Any      = "Any"
	Upcoming = "Upcoming"
	Started  = "Started"
)

// Filter has the conditions that lists of issues and merge requests share. Zero
// values match everything.
type Filter struct {
	State     State
	Scope     string // created_by_me, assigned_to_me or, for merge requests, reviews_for_me
	Search    string
	InTitle   bool // search in the title; both fields if neither is set
	InText    bool
	CreatedAt [2]*time.Time
	UpdatedAt [2]*time.Time
	Live      bool // exclude archived projects
}

// Match has the conditions that can be negated.
type Match struct {
	IIDs      []int64
	Labels    []string // all of these names, or None or Any
	Milestone string   // title, or None, Any, Upcoming or Started
	// MilestoneID is an ID, or None, Any, Upcoming or Started.
	MilestoneID       string
	ReleaseTag        string // the milestone belongs to this release of the project
	AuthorID          int64
	AuthorUsername    string
	AssigneeID        string // ID, or None or Any
	AssigneeUsernames []string
	Weight            string // issues only: a number, or None or Any
	Reaction          string // emoji name, or None or Any
	ReactionBy        int64  // ID of the user who reacted

	// Usernames are additional usernames to resolve to IDs.
	Usernames []string
	// More is set if the caller has additional conditions.
	More bool

	named // IDs of the names, set by resolve
}

// Sort is the order of a list.
type Sort struct {
	By   string
	Desc bool
}
