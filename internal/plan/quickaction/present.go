package quickaction

import "strings"

// verbs maps the first words of the sentences that describe applied quick actions
// to the present tense.
var verbs = map[string]string{
	"Added": "Adds", "Assigned": "Assigns", "Changed": "Changes", "Cleared": "Clears", "Closed": "Closes", "Copied": "Copies",
	"Locked": "Locks", "Made": "Makes", "Marked": "Marks", "Reassigned": "Reassigns", "Removed": "Removes", "Reopened": "Reopens",
	"Replaced": "Replaces", "Requested": "Requests", "Set": "Sets", "Subscribed": "Subscribes", "Subtracted": "Subtracts",
	"Unlocked": "Unlocks", "Unsubscribed": "Unsubscribes",
}

// Present returns a sentence such as "Closed this issue." in the present tense.
func Present(sentence string) string {
	verb, rest, _ := strings.Cut(sentence, " ")
	if present := verbs[verb]; present != "" {
		verb = present
	}
	return verb + " " + rest
}

// Effect returns an imperative such as "Approve the merge request; you can revoke
// it" as a sentence about what happens: "Approves the merge request." Arguments are
// appended.
func Effect(imperative, args string) string {
	imperative, _, _ = strings.Cut(imperative, ";")
	verb, rest, _ := strings.Cut(imperative, " ")
	ending := "s"
	if strings.HasSuffix(verb, "sh") || strings.HasSuffix(verb, "ch") || strings.HasSuffix(verb, "s") {
		ending = "es"
	}
	if args != "" {
		args = ": " + args
	}
	return strings.TrimSpace(verb+ending+" "+rest) + args + "."
}
