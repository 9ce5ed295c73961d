package notify

import "slices"

// EventType is a type of event. Users select the types of which they are notified.
type EventType string

// The event types. The type of epics exists only in the settings.
const (
	NewNote              EventType = "new_note"
	NewIssue             EventType = "new_issue"
	ReopenIssue          EventType = "reopen_issue"
	CloseIssue           EventType = "close_issue"
	ReassignIssue        EventType = "reassign_issue"
	IssueDue             EventType = "issue_due"
	NewMergeRequest      EventType = "new_merge_request"
	PushToMergeRequest   EventType = "push_to_merge_request"
	ReopenMergeRequest   EventType = "reopen_merge_request"
	CloseMergeRequest    EventType = "close_merge_request"
	ReassignMergeRequest EventType = "reassign_merge_request"
	ChangeReviewer       EventType = "change_reviewer_merge_request"
	MergeMergeRequest    EventType = "merge_merge_request"
	FailedPipeline       EventType = "failed_pipeline"
	FixedPipeline        EventType = "fixed_pipeline"
	SuccessPipeline      EventType = "success_pipeline"
	MovedProject         EventType = "moved_project"
	MergeWhenSucceeds    EventType = "merge_when_pipeline_succeeds"
	NewEpic              EventType = "new_epic"
	NewRelease           EventType = "new_release"

	// Event types without a setting: participants and watchers are notified.
	MovedIssue EventType = "moved_issue"
	// ApproveMergeRequest and UnapproveMergeRequest: a user approved a merge
	// request, or revoked their approval.
	ApproveMergeRequest   EventType = "approve_merge_request"
	UnapproveMergeRequest EventType = "unapprove_merge_request"
	Mention               EventType = "mention"   // a text mentions another user
	Relabel               EventType = "relabel"   // for subscribers of a label
	NewAlert              EventType = "new_alert" // for Maintainers and Owners
)

// EventTypes returns the types that have a setting, in the order of the API.
func EventTypes() []EventType {
	return []EventType{
		NewNote, NewIssue, ReopenIssue, CloseIssue, ReassignIssue, IssueDue, NewMergeRequest, PushToMergeRequest, ReopenMergeRequest,
		CloseMergeRequest, ReassignMergeRequest, ChangeReviewer, MergeMergeRequest, FailedPipeline, FixedPipeline, SuccessPipeline,
		MovedProject, MergeWhenSucceeds, NewEpic, NewRelease,
	}
}

// onByDefault reports whether users who have not selected or deselected an event
// type are notified of it.
func onByDefault(e EventType) bool {
	return slices.Contains([]EventType{FailedPipeline, FixedPipeline, MovedProject, NewAlert}, e)
}

// Level is a notification level.
type Level string

// The levels.
const (
	Disabled      Level = "disabled"      // nothing
	Participating Level = "participating" // events of targets in which the user participates
	Watch         Level = "watch"         // nearly all events
	Global        Level = "global"        // the level of the group above, or the global one
	Mentioned     Level = "mention"       // events that mention the user
	Custom        Level = "custom"        // as Participating, and the event types that the user selected
)

// Levels returns all levels.
func Levels() []Level { return []Level{Disabled, Participating, Watch, Global, Mentioned, Custom} }

// relation is how a user is related to an event. A higher value is closer.
type relation int

const (
	byWatching relation = iota + 1 // watches the project or a group above
	byParticipation
	byMention
	bySubscription // subscribed to the target
)

// wants reports whether a user with this setting is notified of an event of a
// type, given their relation to it.
func (t Setting) wants(e EventType, w relation) bool {
	if w == bySubscription {
		return true // regardless of the level
	}
	switch t.Level {
	case Watch:
		return w >= byParticipation || !slices.Contains([]EventType{PushToMergeRequest, IssueDue, SuccessPipeline}, e)
	case Custom:
		return w >= byParticipation || t.Chosen(e)
	case Participating:
		return w >= byParticipation || onByDefault(e)
	case Mentioned:
		return w == byMention
	}
	return false
}
