package hook

import (
	"encoding/json"
	"fmt"
	"strings"
)

// chatMessage is the message of a chat integration about an event: the JSON of an
// incoming webhook, which Slack and Mattermost share.
func (h *Hook) chatMessage(trigger Trigger, payload []byte) ([]byte, error) {
	var p object
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, err
	}
	m := describe(trigger, p)
	out := object{"text": m.text, "attachments": []any{}}
	if m.detail != "" {
		out["attachments"] = []any{object{
			"title": m.title, "title_link": m.link, "text": m.detail, "color": m.color, "fallback": m.title, "mrkdwn_in": []string{"title", "text", "fallback", "fields"},
		}}
	}
	if name := h.Options.Username; name != "" {
		out["username"] = name
	}
	channel := h.Options.Channels[string(trigger)]
	if channel == "" {
		channel = h.Options.Channel
	}
	if channel != "" {
		out["channel"] = channel
	}
	return json.Marshal(out)
}

// message is what a chat message says.
type message struct{ text, title, link, detail, color string }

// get returns a text of a payload by its path.
func get(p object, path string) string {
	switch v := lookUp(map[string]any(p), path).(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprint(v)
	}
}

// chatText escapes the characters that chat services treat as markup of links.
func chatText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// chatLink is a link in a chat message.
func chatLink(url, text string) string {
	if url == "" {
		return chatText(text)
	}
	return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", " ", "%20").Replace(url) + "|" + strings.ReplaceAll(chatText(text), "|", "¦") + ">"
}

const detailColor = "#345"

// describe writes the message about an event.
func describe(trigger Trigger, p object) message {
	project := chatLink(get(p, "project.web_url"), get(p, "project.path_with_namespace"))
	who := chatText(get(p, "user.name"))
	if username := get(p, "user.username"); username != "" {
		who += " (" + chatText(username) + ")"
	}
	switch trigger {
	case Push, TagPush:
		return describePush(p, project)
	case Issues, ConfidentialIssue:
		return describeIssuable(p, project, who, "issue", "#")
	case MergeRequests:
		return describeIssuable(p, project, who, "merge request", "!")
	case Notes, ConfidentialNote:
		target := map[string]string{"Issue": "issue #" + get(p, "issue.iid"), "MergeRequest": "merge request !" + get(p, "merge_request.iid"),
			"Snippet": "snippet $" + get(p, "snippet.id"), "Commit": "commit " + clip(get(p, "object_attributes.commit_id"), 8)}[get(p, "object_attributes.noteable_type")]
		title := get(p, "issue.title") + get(p, "merge_request.title") + get(p, "snippet.title") + get(p, "commit.title")
		return message{
			text:  fmt.Sprintf("%s %s in %s: *%s*", who, chatLink(get(p, "object_attributes.url"), "commented on "+target), project, chatText(title)),
			title: target, link: get(p, "object_attributes.url"), detail: chatText(clip(get(p, "object_attributes.note"), 2000)), color: detailColor,
		}
	case Pipelines:
		return describePipeline(p, project, who)
	case WikiPages:
		done := map[string]string{"create": "created", "update": "edited", "delete": "deleted"}[get(p, "object_attributes.action")]
		return message{text: fmt.Sprintf("%s %s %s in %s: *%s*", who, done, chatLink(get(p, "object_attributes.url"), "wiki page"), project, chatText(get(p, "object_attributes.title")))}
	case Deployments:
		done := map[string]string{"running": "Starting deploy", "success": "Deployed", "failed": "Failed deploy", "canceled": "Canceled deploy"}[get(p, "status")]
		if done == "" {
			done = "Deploy " + get(p, "status")
		}
		text := fmt.Sprintf("%s to %s", done, chatText(get(p, "environment")))
		return message{
			text: text, title: chatText(get(p, "commit_title")), link: get(p, "commit_url"),
			detail: fmt.Sprintf("%s with job %s by %s\n%s: %s", project, chatLink(get(p, "deployable_url"), "#"+get(p, "deployable_id")), who,
				chatLink(get(p, "commit_url"), get(p, "short_sha")), chatText(get(p, "commit_title"))), color: statusColor(get(p, "status")),
		}
	}
	return message{text: fmt.Sprintf("%s in %s", chatText(get(p, "object_kind")), project)}
}

func statusColor(status string) string {
	switch status {
	case "success":
		return "good"
	case "failed":
		return "danger"
	}
	return "warning"
}

func describePush(p object, project string) message {
	who := chatText(get(p, "user_name"))
	web, ref := get(p, "project.web_url"), get(p, "ref")
	name, isBranch := cutRef(ref)
	kind := "tag"
	if isBranch {
		kind = "branch"
	}
	at := chatLink(web+"/-/commits/"+name, name)
	zero := func(sha string) bool { return strings.Trim(sha, "0") == "" }
	switch {
	case zero(get(p, "after")):
		return message{text: fmt.Sprintf("%s removed %s %s from %s", who, kind, chatText(name), project)}
	case zero(get(p, "before")):
		return message{text: fmt.Sprintf("%s pushed new %s %s to %s", who, kind, at, project)}
	}
	m := message{text: fmt.Sprintf("%s pushed to %s %s of %s (%s)", who, kind, at, project,
		chatLink(web+"/-/compare/"+get(p, "before")+"..."+get(p, "after"), "Compare changes")), color: detailColor}
	commits, _ := p["commits"].([]any)
	var lines []string
	for _, c := range commits {
		o, ok := c.(map[string]any)
		if !ok {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s - %s", chatLink(get(o, "url"), clip(get(o, "id"), 8)), chatText(get(o, "title")), chatText(get(o, "author.name"))))
	}
	m.detail = strings.Join(lines, "\n")
	return m
}

func describeIssuable(p object, project, who, noun, mark string) message {
	action := get(p, "object_attributes.action")
	done := map[string]string{
		"open": "opened", "close": "closed", "reopen": "reopened", "update": "updated", "merge": "merged", "approved": "approved", "unapproved": "unapproved",
		"approval": "added their approval to", "unapproval": "removed their approval from",
	}[action]
	reference, title := mark+get(p, "object_attributes.iid"), get(p, "object_attributes.title")
	link := get(p, "object_attributes.url")
	m := message{text: fmt.Sprintf("%s %s %s %s in %s: *%s*", who, done, noun, chatLink(link, reference), project, chatText(title))}
	if action == "open" && noun == "issue" {
		m.title, m.link, m.color = chatText(reference+" "+title), link, detailColor
		m.detail = chatText(clip(get(p, "object_attributes.description"), 2000))
	}
	return m
}

func describePipeline(p object, project, who string) message {
	status := get(p, "object_attributes.status")
	done := map[string]string{"success": "passed", "failed": "failed"}[status]
	link := get(p, "object_attributes.url")
	kind := "branch"
	if get(p, "object_attributes.tag") == "true" {
		kind = "tag"
	}
	text := fmt.Sprintf("%s: Pipeline %s of %s %s by %s %s", project, chatLink(link, "#"+get(p, "object_attributes.id")), kind,
		chatLink(get(p, "project.web_url")+"/-/commits/"+get(p, "object_attributes.ref"), get(p, "object_attributes.ref")), who, done)
	var failed []string
	builds, _ := p["builds"].([]any)
	for _, b := range builds {
		if o, ok := b.(map[string]any); ok && get(o, "status") == "failed" && get(o, "allow_failure") != "true" {
			failed = append(failed, chatText(get(o, "name")))
		}
	}
	detail := chatLink(get(p, "commit.url"), clip(get(p, "object_attributes.sha"), 8)) + ": " + chatText(get(p, "commit.title"))
	if len(failed) > 0 {
		detail += "\nFailed jobs: " + strings.Join(failed[:min(len(failed), 10)], ", ")
	}
	return message{text: text, title: "Pipeline #" + get(p, "object_attributes.id") + " " + done, link: link, detail: detail, color: statusColor(status)}
}
