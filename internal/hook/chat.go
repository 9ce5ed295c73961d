package hook

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// span is a piece of text in a chat message.
type span struct {
	text string
	url  string // of a link
	bold bool
}

// line is a line of a chat message, without the markup of a chat service.
type line []span

// say returns a line that consists of texts and spans.
func say(parts ...any) line {
	var l line
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			l = append(l, span{text: p})
		case span:
			l = append(l, p)
		}
	}
	return l
}

func link(url, text string) span { return span{text: text, url: url} }
func bold(text string) span      { return span{text: text, bold: true} }

// message is a chat message in a form that is common to all chat services.
type message struct {
	text   line
	title  string // of the detail
	link   string
	detail []line
	status string // success, failed or another one of a pipeline or deployment
}

// markup writes a line in the markup of a chat service. It escapes what users wrote, so
// that a title cannot become a link or a mention.
type markup func(l line) string

// markupOf returns the markup that escapes text and writes links and bold text as
// given. link gets the address and the text, both escaped.
func markupOf(escape func(string) string, link func(url, text string) string, mark [2]string) markup {
	return func(l line) string {
		var b strings.Builder
		for _, s := range l {
			text := escape(quiet(s.text))
			switch {
			case s.url != "":
				text = link(linkEscapes.Replace(s.url), text)
			case s.bold:
				text = mark[0] + text + mark[1]
			}
			b.WriteString(text)
		}
		return b.String()
	}
}

// lines writes lines with a separator.
func (m markup) lines(list []line, separator string) string {
	var texts []string
	for _, l := range list {
		texts = append(texts, m(l))
	}
	return strings.Join(texts, separator)
}

// mention matches names that notify all members of a channel in some chat services.
var mention = regexp.MustCompile(`(?i)@(channel|all|here|everyone)\b`)

// quiet disables mentions by inserting a zero-width space.
func quiet(text string) string { return mention.ReplaceAllString(text, "@\u200b$1") }

var (
	slackEscapes    = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	googleEscapes   = strings.NewReplacer("<", "‹", ">", "›")
	markdownEscapes = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "~", "\\~", "<", "\\<", ">", "\\>", "#", "\\#", "|", "\\|")
	linkEscapes     = strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", " ", "%20", "(", "%28", ")", "%29", "\"", "%22")
)

var (
	// slackMarkup is the markup of Slack, which Mattermost reads too.
	slackMarkup = markupOf(slackEscapes.Replace, slackLink, [2]string{"*", "*"})
	// googleMarkup is the markup of Google Chat: that of Slack without escapes.
	googleMarkup = markupOf(googleEscapes.Replace, slackLink, [2]string{"*", "*"})
	// markdownMarkup is Markdown.
	markdownMarkup = markupOf(markdownEscapes.Replace, func(url, text string) string { return "[" + text + "](" + url + ")" }, [2]string{"**", "**"})
	// htmlMarkup is the HTML that Matrix and Telegram read.
	htmlMarkup = markupOf(html.EscapeString, func(url, text string) string { return `<a href="` + html.EscapeString(url) + `">` + text + "</a>" }, [2]string{"<b>", "</b>"})
	// plainMarkup is text without links.
	plainMarkup = markupOf(func(s string) string { return s }, func(_, text string) string { return text }, [2]string{})
)

func slackLink(url, text string) string {
	return "<" + url + "|" + strings.ReplaceAll(text, "|", "¦") + ">"
}

// get returns a string of a payload by its path.
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

// describe writes the message about an event.
func describe(trigger Trigger, payload []byte) (message, error) {
	var p object
	if err := json.Unmarshal(payload, &p); err != nil {
		return message{}, err
	}
	project := link(get(p, "project.web_url"), get(p, "project.path_with_namespace"))
	who := get(p, "user.name")
	if username := get(p, "user.username"); username != "" {
		who += " (" + username + ")"
	}
	switch trigger {
	case Push, TagPush:
		return describePush(p, project), nil
	case Issues, ConfidentialIssue:
		return describeIssuable(p, project, who, "issue", "#"), nil
	case MergeRequests:
		return describeIssuable(p, project, who, "merge request", "!"), nil
	case Notes, ConfidentialNote:
		return describeNote(p, project, who), nil
	case Pipelines:
		return describePipeline(p, project, who), nil
	case WikiPages:
		done := map[string]string{"create": "created", "update": "edited", "delete": "deleted"}[get(p, "object_attributes.action")]
		return message{text: say(who, " ", done, " ", link(get(p, "object_attributes.url"), "wiki page"), " in ", project, ": ", bold(get(p, "object_attributes.title")))}, nil
	case Deployments:
		return describeDeployment(p, project, who), nil
	}
	return message{text: say(get(p, "object_kind"), " in ", project)}, nil
}

// maxDetail is the size, in bytes, to which descriptions and comments are cut in a message.
const maxDetail = 2000

func describeNote(p object, project span, who string) message {
	target := map[string]string{"Issue": "issue #" + get(p, "issue.iid"), "MergeRequest": "merge request !" + get(p, "merge_request.iid"),
		"Snippet": "snippet $" + get(p, "snippet.id"), "Commit": "commit " + clip(get(p, "object_attributes.commit_id"), 8)}[get(p, "object_attributes.noteable_type")]
	title := get(p, "issue.title") + get(p, "merge_request.title") + get(p, "snippet.title") + get(p, "commit.title")
	url := get(p, "object_attributes.url")
	return message{
		text:  say(who, " ", link(url, "commented on "+target), " in ", project, ": ", bold(title)),
		title: target, link: url, detail: []line{say(clip(get(p, "object_attributes.note"), maxDetail))},
	}
}

func describeDeployment(p object, project span, who string) message {
	done := map[string]string{"running": "Starting deploy", "success": "Deployed", "failed": "Failed deploy", "canceled": "Canceled deploy"}[get(p, "status")]
	if done == "" {
		done = "Deploy " + get(p, "status")
	}
	commit := get(p, "commit_url")
	return message{
		text: say(done + " to " + get(p, "environment")), title: get(p, "commit_title"), link: commit, status: get(p, "status"),
		detail: []line{
			say(project, " with job ", link(get(p, "deployable_url"), "#"+get(p, "deployable_id")), " by "+who),
			say(link(commit, get(p, "short_sha")), ": "+get(p, "commit_title")),
		},
	}
}

func describePush(p object, project span) message {
	who, web := get(p, "user_name"), get(p, "project.web_url")
	name, isBranch := cutRef(get(p, "ref"))
	kind := "tag"
	if isBranch {
		kind = "branch"
	}
	at := link(web+"/-/commits/"+name, name)
	zero := func(sha string) bool { return strings.Trim(sha, "0") == "" }
	switch {
	case zero(get(p, "after")):
		return message{text: say(who, " removed ", kind, " ", name, " from ", project)}
	case zero(get(p, "before")):
		return message{text: say(who, " pushed new ", kind, " ", at, " to ", project)}
	}
	compare := link(web+"/-/compare/"+get(p, "before")+"..."+get(p, "after"), "Compare changes")
	m := message{text: say(who, " pushed to ", kind, " ", at, " of ", project, " (", compare, ")")}
	commits, _ := p["commits"].([]any)
	for _, c := range commits {
		if o, ok := c.(map[string]any); ok {
			m.detail = append(m.detail, say(link(get(o, "url"), clip(get(o, "id"), 8)), ": ", get(o, "title"), " - ", get(o, "author.name")))
		}
	}
	return m
}

func describeIssuable(p object, project span, who, noun, mark string) message {
	action := get(p, "object_attributes.action")
	done := map[string]string{
		"open": "opened", "close": "closed", "reopen": "reopened", "update": "updated", "merge": "merged", "approved": "approved", "unapproved": "unapproved",
		"approval": "added their approval to", "unapproval": "removed their approval from",
	}[action]
	reference, title, url := mark+get(p, "object_attributes.iid"), get(p, "object_attributes.title"), get(p, "object_attributes.url")
	m := message{text: say(who, " ", done, " ", noun, " ", link(url, reference), " in ", project, ": ", bold(title))}
	if text := get(p, "object_attributes.description"); action == "open" && noun == "issue" && text != "" {
		m.title, m.link, m.detail = reference+" "+title, url, []line{say(clip(text, maxDetail))}
	}
	return m
}

func describePipeline(p object, project span, who string) message {
	status, url := get(p, "object_attributes.status"), get(p, "object_attributes.url")
	done := map[string]string{"success": "passed", "failed": "failed"}[status]
	kind := "branch"
	if get(p, "object_attributes.tag") == "true" {
		kind = "tag"
	}
	ref, number := get(p, "object_attributes.ref"), "#"+get(p, "object_attributes.id")
	m := message{
		text:  say(project, ": Pipeline ", link(url, number), " of ", kind, " ", link(get(p, "project.web_url")+"/-/commits/"+ref, ref), " by ", who, " ", done),
		title: "Pipeline " + number + " " + done, link: url, status: status,
		detail: []line{say(link(get(p, "commit.url"), clip(get(p, "object_attributes.sha"), 8)), ": ", get(p, "commit.title"))},
	}
	var failed []string
	builds, _ := p["builds"].([]any)
	for _, b := range builds {
		if o, ok := b.(map[string]any); ok && get(o, "status") == "failed" && get(o, "allow_failure") != "true" && len(failed) < 10 {
			failed = append(failed, get(o, "name"))
		}
	}
	if len(failed) > 0 {
		m.detail = append(m.detail, say("Failed jobs: "+strings.Join(failed, ", ")))
	}
	return m
}
