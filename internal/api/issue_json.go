package api

import (
	"html"
	"strconv"
	"strings"
	"time"

	"svc/internal/plan"
	"svc/internal/user"
)

type issueJSON struct {
	ID                   int64            `json:"id"`
	IID                  int64            `json:"iid"`
	ProjectID            int64            `json:"project_id"`
	Title                string           `json:"title"`
	Description          *string          `json:"description"`
	State                string           `json:"state"`
	CreatedAt            stamp            `json:"created_at"`
	UpdatedAt            stamp            `json:"updated_at"`
	ClosedAt             *stamp           `json:"closed_at"`
	ClosedBy             *userPublicJSON  `json:"closed_by"`
	Labels               any              `json:"labels"` // names, or details
	Milestone            *milestoneJSON   `json:"milestone"`
	Assignees            []userPublicJSON `json:"assignees"`
	Author               *userPublicJSON  `json:"author"`
	Type                 string           `json:"type"`
	Assignee             *userPublicJSON  `json:"assignee"` // the first one
	UserNotesCount       int64            `json:"user_notes_count"`
	MergeRequestsCount   int64            `json:"merge_requests_count"`
	Upvotes              int64            `json:"upvotes"`
	Downvotes            int64            `json:"downvotes"`
	DueDate              *day             `json:"due_date"`
	Confidential         bool             `json:"confidential"`
	DiscussionLocked     *bool            `json:"discussion_locked"`
	IssueType            string           `json:"issue_type"`
	WebURL               string           `json:"web_url"`
	TimeStats            timeStatsJSON    `json:"time_stats"`
	TaskCompletionStatus taskStatusJSON   `json:"task_completion_status"`
	Weight               *int64           `json:"weight"`
	BlockingIssuesCount  int64            `json:"blocking_issues_count"`
	HasTasks             bool             `json:"has_tasks"`
	TaskStatus           *string          `json:"task_status,omitempty"`
	Links                issueLinksJSON   `json:"_links"`
	References           referencesJSON   `json:"references"`
	Severity             string           `json:"severity"`
	MovedToID            *int64           `json:"moved_to_id"`
	Imported             bool             `json:"imported"`
	ImportedFrom         string           `json:"imported_from"`
	ServiceDeskReplyTo   *string          `json:"service_desk_reply_to"`
	HealthStatus         *string          `json:"health_status"` // always null, like the next two fields
	Epic                 *struct{}        `json:"epic"`
	Iteration            *struct{}        `json:"iteration"`
}

// issueDetailJSON is the representation of a single issue.
type issueDetailJSON struct {
	issueJSON
	Subscribed bool `json:"subscribed"`
}

type timeStatsJSON struct {
	TimeEstimate        int64   `json:"time_estimate"`
	TotalTimeSpent      int64   `json:"total_time_spent"`
	HumanTimeEstimate   *string `json:"human_time_estimate"`
	HumanTotalTimeSpent *string `json:"human_total_time_spent"`
}

type taskStatusJSON struct {
	Count     int `json:"count"`
	Completed int `json:"completed_count"`
}

type issueLinksJSON struct {
	Self              string  `json:"self"`
	Notes             string  `json:"notes"`
	AwardEmoji        string  `json:"award_emoji"`
	Project           string  `json:"project"`
	ClosedAsDuplicate *string `json:"closed_as_duplicate_of"`
}

type referencesJSON struct {
	Short    string `json:"short"`
	Relative string `json:"relative"`
	Full     string `json:"full"`
}

// toTasks counts the task list items of a Markdown text: lines that start with
// "- [ ]", "1. [x]" and similar. It searches for brackets, because a list of issues
// can have 100 MB of text, most of it without tasks.
func toTasks(text string) (t taskStatusJSON) {
	const space = " \t\n\f\r"
	for rest := 0; ; {
		next := strings.IndexByte(text[rest:], '[')
		if next < 0 {
			return t
		}
		before, box := text[rest:rest+next], text[rest+next:]
		first := rest == 0
		rest += next + 1
		if len(box) < 4 || box[2] != ']' || !strings.Contains(" xX", box[1:2]) || !strings.Contains(space, box[3:4]) {
			continue
		}
		// The text before the box starts after the previous bracket, so each byte
		// is read only once.
		item := strings.TrimRight(before, space)
		if len(item) == len(before) || item == "" {
			continue
		}
		switch marker := item[len(item)-1]; marker {
		case '-', '+', '*':
			item = item[:len(item)-1]
		case '.', ')':
			number := item[:len(item)-1]
			if item = strings.TrimRight(number, "0123456789"); item == number {
				continue
			}
		default:
			continue
		}
		indent := item[len(strings.TrimRight(item, space)):]
		if strings.Contains(indent, "\n") || first && indent == item {
			t.Count++
			if box[1] != ' ' {
				t.Completed++
			}
		}
	}
}

func toIssue(site *Site, i *plan.Issue, details bool, now time.Time) issueJSON {
	number := strconv.FormatInt(i.IID, 10)
	planned := toPlanned(site, &i.Issuable, details, now)
	self := site.URL + prefix + "/projects/" + strconv.FormatInt(i.ProjectID, 10)
	out := issueJSON{
		ID: i.ID, IID: i.IID, ProjectID: i.ProjectID, Title: i.Title, Description: textOrNull(i.Description), State: string(i.State),
		CreatedAt: toStamp(i.CreatedAt), UpdatedAt: toStamp(i.UpdatedAt), ClosedAt: toStampOrNull(i.ClosedAt), ClosedBy: toUserOrNull(site, i.ClosedBy, now),
		Author: toUserOrNull(site, i.Author, now), Assignees: planned.assignees, Assignee: planned.assignee, Milestone: planned.milestone, Type: strings.ToUpper(i.Type), UserNotesCount: i.Notes, Upvotes: i.Upvotes, Downvotes: i.Downvotes, DueDate: toDayOrNull(i.DueDate), Confidential: i.Confidential, DiscussionLocked: i.Locked,
		IssueType: i.Type, WebURL: site.URL + "/" + i.ProjectPath + "/-/issues/" + number, TaskCompletionStatus: toTasks(i.Description), Weight: i.Weight,
		Links:      issueLinksJSON{Self: self + "/issues/" + number, Notes: self + "/issues/" + number + "/notes", AwardEmoji: self + "/issues/" + number + "/award_emoji", Project: self},
		References: referencesJSON{"#" + number, "#" + number, i.ProjectPath + "#" + number},
		Labels:     planned.labels,
		TimeStats:  toTimeStats(&i.Issuable),
		Severity:   "UNKNOWN", MovedToID: i.MovedToID, ImportedFrom: "none",
	}
	out.HasTasks = out.TaskCompletionStatus.Count > 0
	return out
}

// toLabels returns the names or the details of labels.
func toLabels(list []*plan.Label, details bool) any {
	if details {
		return mapped(list, toLabelDetail)
	}
	return mapped(list, func(l *plan.Label) string { return l.Name })
}

// labelDetailJSON is a label in a list of issues.
type labelDetailJSON struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Color           string  `json:"color"`
	Description     *string `json:"description"`
	DescriptionHTML string  `json:"description_html"`
	TextColor       string  `json:"text_color"`
}

func toLabelDetail(l *plan.Label) labelDetailJSON {
	return labelDetailJSON{l.ID, l.Name, l.Color, textOrNull(l.Description), html.EscapeString(l.Description), l.TextColor()}
}

func toUserOrNull(site *Site, u *user.User, now time.Time) *userPublicJSON {
	if u == nil {
		return nil
	}
	out := toUserPublic(site, u, now)
	return &out
}

func (a *API) presentIssue(c *call, i *plan.Issue, err error) (issueDetailJSON, error) {
	if err != nil {
		return issueDetailJSON{}, err
	}
	out := issueDetailJSON{toIssue(c.site, i, false, a.Now()), i.Subscribed}
	n, err := a.Merges.CountOfIssues(c, c.actor, []int64{i.ID})
	out.MergeRequestsCount = n[i.ID]
	return out, err
}
