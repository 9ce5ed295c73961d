package notify

import "slices"

// Event is a kind of act that people choose whether to be told of.
type Event string

// The events. Those of epics and releases are kept with the settings: there are
// no such things here.
const (
	NewNote              Event = "new_note"
	NewIssue             Event = "new_issue"
	ReopenIssue          Event = "reopen_issue"
	CloseIssue           Event = "close_issue"
	ReassignIssue        Event = "reassign_issue"
	IssueDue             Event = "issue_due"
	NewMergeRequest      Event = "new_merge_request"
	PushToMergeRequest   Event = "push_to_merge_request"
	ReopenMergeRequest   Event = "reopen_merge_request"
	CloseMergeRequest    Event = "close_merge_request"
	ReassignMergeRequest Event = "reassign_merge_request"
	ChangeReviewer       Event = "change_reviewer_merge_request"
	MergeMergeRequest    Event = "merge_merge_request"
	FailedPipeline       Event = "failed_pipeline"
	FixedPipeline        Event = "fixed_pipeline"
	SuccessPipeline      Event = "success_pipeline"
	MovedProject         Event = "moved_project"
	MergeWhenSucceeds    Event = "merge_when_pipeline_succeeds"
	NewEpic              Event = "new_epic"
	NewRelease           Event = "new_release"

	// What nobody can choose: it goes to those who take part, and to those who
	// watch.
	MovedIssue Event = "moved_issue"
	Mention    Event = "mention"   // somebody is new in a text
	Relabel    Event = "relabel"   // for those who follow a label
	NewAlert   Event = "new_alert" // for those who keep the project
)

// Events are those that can be chosen, in the order of the settings.
func Events() []Event {
	return []Event{
		NewNote, NewIssue, ReopenIssue, CloseIssue, ReassignIssue, IssueDue, NewMergeRequest, PushToMergeRequest, ReopenMergeRequest,
		CloseMergeRequest, ReassignMergeRequest, ChangeReviewer, MergeMergeRequest, FailedPipeline, FixedPipeline, SuccessPipeline,
		MovedProject, MergeWhenSucceeds, NewEpic, NewRelease,
	}
}

// usual tells whether an event is chosen by somebody who never said anything of
// it: what is more like a word to himself than the rest.
func usual(e Event) bool {
	return slices.Contains([]Event{FailedPipeline, FixedPipeline, MovedProject, NewAlert}, e)
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

// way is how somebody has to do with an act. The later, the closer.
type way int

const (
	watching way = iota + 1 // the place
	partaking
	mentioned
	asking // he asked to be told of the thing
)

// wants tells whether somebody with this setting wants to be told of an event
// that he has to do with in a way.
func (t Setting) wants(e Event, w way) bool {
	if w == asking {
		return true // whatever his settings are
	}
	switch t.Level {
	case Watch:
		return w >= partaking || !slices.Contains([]Event{PushToMergeRequest, IssueDue, SuccessPipeline}, e)
	case Custom:
		return w >= partaking || t.Chosen(e)
	case Participating:
		return w >= partaking || usual(e)
	case Mentioned:
		return w == mentioned
	}
	return false
}
