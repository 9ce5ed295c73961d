package plan

import (
	"strings"
)

// commandTable lists the quick actions by name. The page
// docs/user/quick-actions.md is generated from it.
func commandTable() []*Command {
	both, issues, requests := []Kind{IssueKind, MergeKind}, []Kind{IssueKind}, []Kind{MergeKind}
	return []*Command{
		{Name: "approve", Description: "Approve the merge request", on: requests, existing: true},
		{Name: "assign", Params: "@user1 @user2", Description: "Assign one or more users; “me” is you", on: both, needs: needsPlan, do: doAssign},
		{Name: "assign_reviewer", Aliases: []string{"reviewer"}, Params: "@user1 @user2", Description: "Assign one or more reviewers; “me” is you",
			on: requests, needs: needsPlan, do: doAssignReviewer},
		{Name: "blocked_by", Aliases: []string{"blocked-by"}, Params: "#issue", Description: "Mark the issue as blocked by other issues", on: issues, existing: true, do: doLink(IsBlockedBy)},
		{Name: "blocks", Params: "#issue", Description: "Mark the issue as blocking other issues", on: issues, existing: true, do: doLink(Blocks)},
		{Name: "cc", Params: "@user", Description: "Mention a user; does nothing else", on: both, text: true},
		{Name: "clear_weight", Description: "Remove the weight", on: issues, needs: needsPlan, do: doClearWeight},
		{Name: "clone", Params: "path/to/project [--with_notes]", Description: "Clone the issue to a project; the default is this project, and --with_notes includes the comments",
			on: issues, needs: needsPlan, existing: true, do: doClone},
		{Name: "close", Description: "Close", on: both, needs: needsEdit, existing: true, do: doClose},
		{Name: "confidential", Description: "Make the issue confidential", on: issues, needs: needsPlan, do: doConfidential},
		{Name: "copy_metadata", Params: "#issue | !merge_request", Description: "Copy labels and milestone from another issue or merge request of the project",
			on: both, needs: needsPlan, do: doCopyMetadata},
		{Name: "create_merge_request", Params: "<branch name>", Description: "Create a branch and a merge request that closes the issue; the default is a name from its number and title",
			on: issues, existing: true},
		{Name: "done", Description: "Mark your to-do item as done", on: both, existing: true},
		{Name: "draft", Description: "Mark the merge request as draft", on: requests, needs: needsEdit, do: doDraft(true)},
		{Name: "due", Params: "<in 2 days | this Friday | December 31st | 2026-12-31>", Description: "Set the due date", on: issues, needs: needsPlan, do: doDue},
		{Name: "duplicate", Params: "#issue", Description: "Close the issue and mark it as a duplicate of another issue", on: issues, needs: needsEdit, existing: true, do: doDuplicate},
		{Name: "estimate", Aliases: []string{"estimate_time"}, Params: "<1w 3d 2h 14m>", Description: "Set the time estimate", on: both, needs: needsPlan, do: doEstimate},
		{Name: "label", Aliases: []string{"labels"}, Params: "~label1 ~label2", Description: "Add labels", on: both, needs: needsPlan, do: doLabel},
		{Name: "lock", Description: "Lock the discussion", on: both, needs: needsPlan, do: doLock(true)},
		{Name: "merge", Description: "Merge the merge request; if its pipeline is running, once it succeeds", on: requests, existing: true},
		{Name: "milestone", Params: "%milestone", Description: "Set the milestone", on: both, needs: needsPlan, do: doMilestone},
		{Name: "move", Params: "path/to/project", Description: "Move the issue to another project", on: issues, needs: needsPlan, existing: true, do: doMove},
		{Name: "promote_to_incident", Description: "Change the type to incident", on: issues, needs: needsPlan, do: doPromote},
		{Name: "react", Aliases: []string{"award"}, Params: ":emoji:", Description: "Toggle an emoji reaction; the same one again removes it", on: both, existing: true},
		{Name: "ready", Description: "Mark the merge request as ready", on: requests, needs: needsEdit, do: doDraft(false)},
		{Name: "reassign", Params: "@user1 @user2", Description: "Replace the assignees", on: both, needs: needsPlan, do: doReassign},
		{Name: "reassign_reviewer", Params: "@user1 @user2", Description: "Replace the reviewers", on: requests, needs: needsPlan, do: doReassignReviewer},
		{Name: "rebase", Description: "Rebase the source branch", on: requests, existing: true},
		{Name: "relabel", Params: "~label1 ~label2", Description: "Replace the labels", on: both, needs: needsPlan, do: doRelabel},
		{Name: "relate", Aliases: []string{"link"}, Params: "#issue", Description: "Mark the issue as related to other issues", on: issues, existing: true, do: doLink(RelatesTo)},
		{Name: "remove_due_date", Description: "Remove the due date", on: issues, needs: needsPlan, do: doRemoveDue},
		{Name: "remove_estimate", Aliases: []string{"remove_time_estimate"}, Description: "Remove the time estimate", on: both, needs: needsPlan, do: doRemoveEstimate},
		{Name: "remove_milestone", Description: "Remove the milestone", on: both, needs: needsPlan, do: doRemoveMilestone},
		{Name: "remove_time_spent", Description: "Remove the time spent", on: both, needs: needsPlan, do: doRemoveSpent},
		{Name: "reopen", Description: "Reopen", on: both, needs: needsEdit, existing: true, do: doReopen},
		{Name: "request_changes", Description: "Request changes of the merge request", on: requests, existing: true},
		{Name: "request_review", Params: "@user1 @user2", Description: "Request a review; “me” is you", on: requests, needs: needsPlan, do: doAssignReviewer},
		{Name: "shrug", Params: "<text>", Description: `Append ¯\_(ツ)_/¯`, on: both, substitute: appendText(`¯\_(ツ)_/¯`)},
		{Name: "spend", Aliases: []string{"spent", "spend_time"}, Params: "<1h 30m | -1h 30m> <YYYY-MM-DD>", Description: "Add or subtract time spent, on a date if one is given",
			on: both, needs: needsPlan, do: doSpend},
		{Name: "submit_review", Description: "Publish your draft comments as a review", on: requests, existing: true},
		{Name: "subscribe", Description: "Subscribe to notifications", on: both, do: doSubscribe(true)},
		{Name: "tableflip", Params: "<text>", Description: "Append (╯°□°)╯︵ ┻━┻", on: both, substitute: appendText("(╯°□°)╯︵ ┻━┻")},
		{Name: "target_branch", Params: "<branch name>", Description: "Set the target branch", on: requests, needs: needsEdit, do: doTargetBranch},
		{Name: "title", Params: "<new title>", Description: "Change the title", on: both, needs: needsEdit, do: doTitle},
		{Name: "todo", Description: "Add a to-do item", on: both, existing: true},
		{Name: "type", Params: "<issue | incident | task | test_case>", Description: "Change the type of the issue", on: issues, needs: needsPlan, do: doType},
		{Name: "unapprove", Description: "Revoke your approval of the merge request", on: requests, existing: true},
		{Name: "unassign", Params: "@user1 @user2", Description: "Remove the assignees, or all without names", on: both, needs: needsPlan, do: doUnassign},
		{Name: "unassign_reviewer", Aliases: []string{"remove_reviewer"}, Params: "@user1 @user2", Description: "Remove reviewers, or all without names",
			on: requests, needs: needsPlan, do: doUnassignReviewer},
		{Name: "unlabel", Aliases: []string{"remove_label"}, Params: "~label1 ~label2", Description: "Remove labels, or all without names", on: both, needs: needsPlan, do: doUnlabel},
		{Name: "unlink", Params: "#issue", Description: "Remove the links with other issues", on: issues, existing: true, do: doUnlink},
		{Name: "unlock", Description: "Unlock the discussion", on: both, needs: needsPlan, do: doLock(false)},
		{Name: "unsubscribe", Description: "Unsubscribe from notifications", on: both, do: doSubscribe(false)},
		{Name: "weight", Params: "<0, 1, 2, …>", Description: "Set the weight", on: issues, needs: needsPlan, do: doWeight},
	}
}

// appendText returns a substitution that appends text to the arguments.
func appendText(text string) func(string) string {
	return func(args string) string { return strings.TrimSpace(args + " " + text) }
}
