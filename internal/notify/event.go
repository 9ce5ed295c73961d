package notify

import "slices"

// EventType is a kind of act that people choose whether to be told of.
type EventType string

// The events. Those of epics and releases are kept with the settings: there are
// no such things here.
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

	// What nobody can choose: it goes to those who take part, and to those who
	// watch.
	MovedIssue EventType = "moved_issue"
	Mention    EventType = "mention"   // somebody is new in a text
	Relabel    EventType = "relabel"   // for those who follow a label
	NewAlert   EventType = "new_alert" // for those who keep the project
)

// EventTypes are those that can be chosen, in the order of the settings.
func EventTypes() []EventType {
	return []EventType{
		NewNote, NewIssue, ReopenIssue, CloseIssue, ReassignIssue, IssueDue, NewMergeRequest, PushToMergeRequest, ReopenMergeRequest,
		CloseMergeRequest, ReassignMergeRequest, ChangeReviewer, MergeMergeRequest, FailedPipeline, FixedPipeline, SuccessPipeline,
		MovedProject, MergeWhenSucceeds, NewEpic, NewRelease,
	}
}

// onByDefault tells whether an event is chosen by somebody who never said anything of
// it: what is more like a word to himself than the rest.
func onByDefault(e EventType) bool {
	return slices.Contains([]EventType{FailedPipeline, FixedPipeline, MovedProject, NewAlert}, e)
}

// Level says how much somebody wants to be told.
type Level string

// The levels.
const (
	Disabled      Level = "disabled"      // nothing
	Participating Level = "participating" // where he takes part
	Watch         Level = "watch"         // nearly everything
	Global        Level = "global"        // as in the group above, or everywhere
	Mentioned     Level = "mention"       // where he is mentioned
	Custom        Level = "custom"        // where he takes part, and the events that he chose
)

// Levels are all of them.
func Levels() []Level { return []Level{Disabled, Participating, Watch, Global, Mentioned, Custom} }

// relation is how somebody has to do with an act. The later, the closer.
type relation int

const (
	byWatching relation = iota + 1 // the place
	byParticipation
	byMention
	bySubscription // he asked to be told of the thing
)

// wants tells whether somebody with this setting wants to be told of an event
// that he has to do with in a way.
func (t Setting) wants(e EventType, w relation) bool {
	if w == bySubscription {
		return true // whatever his settings are
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
