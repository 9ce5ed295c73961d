package archive

import (
	"encoding/json"
	"regexp"
	"time"
)

// Person is a user in the file of a project: the number of a row of users.ndjson,
// from 1. 0 is a deleted user.
type Person int

// ProjectRow is a project.
type ProjectRow struct {
	Description   string    `json:"description"`
	Visibility    string    `json:"visibility"`
	Archived      bool      `json:"archived"`
	Topics        []string  `json:"topics"`
	DefaultBranch string    `json:"default_branch"`
	WikiBranch    string    `json:"wiki_branch,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
	// Settings has the settings by their names in the API.
	Settings  json.RawMessage `json:"settings"`
	PushRules json.RawMessage `json:"push_rules,omitempty"`
}

// UploadRow is a file that texts link to. Its content is the entry uploads/SECRET.
type UploadRow struct {
	Secret    string    `json:"secret"`
	Name      string    `json:"name"`
	Size      int64     `json:"size"`
	Author    Person    `json:"author"`
	CreatedAt time.Time `json:"created_at"`
}

// ProjectMemberRow is a direct member of a project.
type ProjectMemberRow struct {
	User        Person    `json:"user"`
	AccessLevel int64     `json:"access_level"`
	ExpiresAt   string    `json:"expires_at,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// ProjectLabelRow is a label of the project, or one of a group above that the project
// uses.
type ProjectLabelRow struct {
	LabelRow
	Priority  *int64 `json:"priority,omitempty"`
	Inherited bool   `json:"inherited,omitempty"`
}

// ProjectMilestoneRow is a milestone of the project, or one of a group above that the
// project uses.
type ProjectMilestoneRow struct {
	MilestoneRow
	Inherited bool `json:"inherited,omitempty"`
}

// ProtectedRow is a protected branch or tag.
type ProtectedRow struct {
	Kind              string      `json:"kind"` // branch or tag
	Name              string      `json:"name"`
	AllowForcePush    bool        `json:"allow_force_push"`
	CodeOwnerApproval bool        `json:"code_owner_approval_required"`
	Access            []AccessRow `json:"access_levels"`
	CreatedAt         time.Time   `json:"created_at"`
}

// AccessRow allows an action for a role or a user.
type AccessRow struct {
	Action      string `json:"action"` // push, merge, unprotect or create
	AccessLevel int64  `json:"access_level"`
	User        Person `json:"user,omitempty"`
}

// ProjectBoardRow is a board of a project. Labels and milestones are named.
type ProjectBoardRow struct {
	Name        string           `json:"name"`
	HideBacklog bool             `json:"hide_backlog_list"`
	HideClosed  bool             `json:"hide_closed_list"`
	Milestone   string           `json:"milestone,omitempty"`
	Assignee    Person           `json:"assignee,omitempty"`
	Weight      *int64           `json:"weight,omitempty"`
	Labels      []string         `json:"labels,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
	Lists       []ProjectListRow `json:"lists,omitempty"`
}

// ProjectListRow has a label, a milestone or an assignee.
type ProjectListRow struct {
	Label     string `json:"label,omitempty"`
	Milestone string `json:"milestone,omitempty"`
	Assignee  Person `json:"assignee,omitempty"`
}

// AwardRow is a reaction.
type AwardRow struct {
	Name      string    `json:"name"`
	User      Person    `json:"user"`
	CreatedAt time.Time `json:"created_at"`
}

// TimelogRow is an entry of time spent.
type TimelogRow struct {
	User      Person    `json:"user"`
	Seconds   int64     `json:"seconds"`
	SpentAt   time.Time `json:"spent_at"`
	Summary   string    `json:"summary"`
	CreatedAt time.Time `json:"created_at"`
}

// IssuableRow has what issues and merge requests share.
type IssuableRow struct {
	IID              int64        `json:"iid"`
	Title            string       `json:"title"`
	Description      string       `json:"description"`
	State            string       `json:"state"`
	DiscussionLocked *bool        `json:"discussion_locked"`
	Author           Person       `json:"author"`
	Assignees        []Person     `json:"assignees"`
	Labels           []string     `json:"labels"`
	Milestone        string       `json:"milestone,omitempty"`
	TimeEstimate     int64        `json:"time_estimate"`
	Timelogs         []TimelogRow `json:"timelogs,omitempty"`
	TimeSpent        int64        `json:"total_time_spent"`
	AwardEmoji       []AwardRow   `json:"award_emoji,omitempty"`
	CreatedAt        time.Time    `json:"created_at"`
	UpdatedAt        time.Time    `json:"updated_at"`
	ClosedAt         *time.Time   `json:"closed_at"`
	ClosedBy         Person       `json:"closed_by"`
}

// IssueRow is an issue.
type IssueRow struct {
	IssuableRow
	Type             string `json:"type"`
	Confidential     bool   `json:"confidential"`
	DueDate          string `json:"due_date,omitempty"`
	Weight           *int64 `json:"weight"`
	RelativePosition int64  `json:"relative_position,omitempty"`
}

// IssueLinkRow links two issues of the project.
type IssueLinkRow struct {
	Source    int64     `json:"source"`
	Target    int64     `json:"target"`
	LinkType  string    `json:"link_type"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// MergeRequestRow is a merge request.
type MergeRequestRow struct {
	IssuableRow
	Draft              bool            `json:"draft"`
	SourceBranch       string          `json:"source_branch"`
	TargetBranch       string          `json:"target_branch"`
	Fork               bool            `json:"fork"` // the source is another project, which is not in the file
	SHA                string          `json:"sha"`
	Squash             bool            `json:"squash"`
	RemoveSourceBranch bool            `json:"should_remove_source_branch"`
	AllowCollaboration bool            `json:"allow_collaboration"`
	MergeCommitSHA     string          `json:"merge_commit_sha,omitempty"`
	SquashCommitSHA    string          `json:"squash_commit_sha,omitempty"`
	MergedAt           *time.Time      `json:"merged_at"`
	MergedBy           Person          `json:"merged_by"`
	PreparedAt         *time.Time      `json:"prepared_at"`
	Reviewers          []ReviewerRow   `json:"reviewers"`
	Approvals          []ApprovalRow   `json:"approvals"`
	ChangeRequests     []ApprovalRow   `json:"requested_changes,omitempty"`
	Committers         []Person        `json:"committers,omitempty"`
	Versions           []VersionRow    `json:"versions"`
	Commits            []string        `json:"commits"` // of the newest version
	Issues             []NamedIssueRow `json:"issues,omitempty"`
	ContextCommits     []CommitRow     `json:"context_commits,omitempty"`
	BlockedBy          []int64         `json:"blocked_by,omitempty"` // merge requests of the project
}

// ReviewerRow is a reviewer.
type ReviewerRow struct {
	User      Person    `json:"user"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"created_at"`
}

// ApprovalRow is an approval, or a request for changes.
type ApprovalRow struct {
	User      Person    `json:"user"`
	SHA       string    `json:"sha,omitempty"`
	Bypassed  bool      `json:"bypassed,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// VersionRow is a diff version.
type VersionRow struct {
	HeadSHA   string    `json:"head_commit_sha"`
	BaseSHA   string    `json:"base_commit_sha"`
	StartSHA  string    `json:"start_commit_sha"`
	WasSHA    string    `json:"previous_commit_sha,omitempty"`
	Author    Person    `json:"author,omitempty"`
	Files     int64     `json:"files"`
	CreatedAt time.Time `json:"created_at"`
}

// NamedIssueRow is an issue that a merge request names.
type NamedIssueRow struct {
	IID    int64 `json:"iid"`
	Closes bool  `json:"closes"`
}

// CommitRow is a commit that was added to a merge request for context.
type CommitRow struct {
	SHA       string    `json:"sha"`
	CreatedAt time.Time `json:"created_at"`
}

// ReleaseRow is a release.
type ReleaseRow struct {
	Tag         string           `json:"tag_name"`
	Name        string           `json:"name"`
	SHA         string           `json:"sha"`
	Description string           `json:"description"`
	Author      Person           `json:"author"`
	Milestones  []string         `json:"milestones"`
	Links       []ReleaseLinkRow `json:"links"`
	CreatedAt   time.Time        `json:"created_at"`
	UpdatedAt   time.Time        `json:"updated_at"`
	ReleasedAt  time.Time        `json:"released_at"`
}

// ReleaseLinkRow is an asset link.
type ReleaseLinkRow struct {
	Name      string    `json:"name"`
	URL       string    `json:"url"`
	Filepath  *string   `json:"filepath"`
	LinkType  string    `json:"link_type"`
	CreatedAt time.Time `json:"created_at"`
}

// SnippetRow is a snippet. Its repository is the entry snippets/N.bundle, where N is
// the number of the row.
type SnippetRow struct {
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Visibility  string     `json:"visibility"`
	Files       []string   `json:"files"`
	Branch      string     `json:"branch"`
	Author      Person     `json:"author"`
	AwardEmoji  []AwardRow `json:"award_emoji,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

// Noteable is the target of a note or event: an issue, a merge request or a snippet.
type Noteable struct {
	Issue        int64 `json:"issue,omitempty"`
	MergeRequest int64 `json:"merge_request,omitempty"`
	Snippet      int64 `json:"snippet,omitempty"` // the number of its row
}

// NoteRow is a comment or a system note.
type NoteRow struct {
	Noteable
	Discussion      string          `json:"discussion"`
	Type            string          `json:"type,omitempty"`
	System          string          `json:"system,omitempty"`
	Internal        bool            `json:"internal,omitempty"`
	Body            string          `json:"body"`
	Author          Person          `json:"author"`
	Position        json.RawMessage `json:"position,omitempty"`
	CurrentPosition json.RawMessage `json:"current_position,omitempty"`
	CommitSHA       string          `json:"commit_id,omitempty"`
	ResolvedAt      *time.Time      `json:"resolved_at,omitempty"`
	ResolvedBy      Person          `json:"resolved_by,omitempty"`
	Suggestions     []SuggestionRow `json:"suggestions,omitempty"`
	AwardEmoji      []AwardRow      `json:"award_emoji,omitempty"`
	Source          *SourceRow      `json:"source,omitempty"` // of a cross reference
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
}

// SourceRow is the source of a mention in the same project: an issue, a merge
// request or a commit.
type SourceRow struct {
	Issue        int64  `json:"issue,omitempty"`
	MergeRequest int64  `json:"merge_request,omitempty"`
	Commit       string `json:"commit,omitempty"`
}

// SuggestionRow is a suggested change.
type SuggestionRow struct {
	FromLine    int64      `json:"from_line"`
	ToLine      int64      `json:"to_line"`
	FromContent string     `json:"from_content"`
	ToContent   string     `json:"to_content"`
	CommitSHA   string     `json:"commit_id,omitempty"`
	AppliedAt   *time.Time `json:"applied_at,omitempty"`
}

// CommentRow is a comment on a commit.
type CommentRow struct {
	SHA        string    `json:"sha"`
	Note       string    `json:"note"`
	Author     Person    `json:"author"`
	Discussion string    `json:"discussion"`
	Thread     bool      `json:"thread"`
	Path       string    `json:"path,omitempty"`
	OldPath    string    `json:"old_path,omitempty"`
	Line       int64     `json:"line,omitempty"`
	LineType   string    `json:"line_type,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// EventRow is a resource event: a label, milestone, state or weight that changed.
type EventRow struct {
	Noteable
	Kind      string    `json:"kind"`
	Action    string    `json:"action"`
	User      Person    `json:"user"`
	Label     string    `json:"label,omitempty"`
	Milestone string    `json:"milestone,omitempty"`
	Weight    *int64    `json:"weight,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// ScheduleRow is a pipeline schedule, without its variables.
type ScheduleRow struct {
	Description string    `json:"description"`
	Ref         string    `json:"ref"`
	Cron        string    `json:"cron"`
	Timezone    string    `json:"cron_timezone"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// ApprovalRuleRow is an approval rule of the project.
type ApprovalRuleRow struct {
	Name              string    `json:"name"`
	RuleType          string    `json:"rule_type"`
	ApprovalsRequired int64     `json:"approvals_required"`
	AllProtected      bool      `json:"applies_to_all_protected_branches"`
	Users             []Person  `json:"users"`
	ProtectedBranches []string  `json:"protected_branches"`
	CreatedAt         time.Time `json:"created_at"`
}

// The parts of a project, in the order in which a file has them.
const (
	ProjectPart      Part = "project.ndjson"
	RepositoryPart   Part = "repository.bundle"
	LFSPart          Part = "lfs" // a directory, as are UploadFilePart and SnippetFilePart
	UploadPart       Part = "uploads.ndjson"
	UploadFilePart   Part = "uploads"
	ProtectedPart    Part = "protected_refs.ndjson"
	IssuePart        Part = "issues.ndjson"
	IssueLinkPart    Part = "issue_links.ndjson"
	MergeRequestPart Part = "merge_requests.ndjson"
	ReleasePart      Part = "releases.ndjson"
	SnippetPart      Part = "snippets.ndjson"
	SnippetFilePart  Part = "snippets"
	NotePart         Part = "notes.ndjson"
	CommentPart      Part = "commit_comments.ndjson"
	EventPart        Part = "resource_events.ndjson"
	SchedulePart     Part = "pipeline_schedules.ndjson"
	ApprovalRulePart Part = "approval_rules.ndjson"
	PersonPart       Part = "users.ndjson"
)

// The names of files in a directory.
var (
	lfsName     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	uploadName  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	snippetName = regexp.MustCompile(`^[1-9][0-9]{0,6}\.bundle$`)
)

func newProjectRow(p Part) any {
	switch p {
	case ProjectPart:
		return &ProjectRow{}
	case UploadPart:
		return &UploadRow{}
	case MemberPart:
		return &ProjectMemberRow{}
	case LabelPart:
		return &ProjectLabelRow{}
	case MilestonePart:
		return &ProjectMilestoneRow{}
	case ProtectedPart:
		return &ProtectedRow{}
	case BoardPart:
		return &ProjectBoardRow{}
	case BadgePart:
		return &BadgeRow{}
	case IssuePart:
		return &IssueRow{}
	case IssueLinkPart:
		return &IssueLinkRow{}
	case MergeRequestPart:
		return &MergeRequestRow{}
	case ReleasePart:
		return &ReleaseRow{}
	case SnippetPart:
		return &SnippetRow{}
	case NotePart:
		return &NoteRow{}
	case CommentPart:
		return &CommentRow{}
	case EventPart:
		return &EventRow{}
	case SchedulePart:
		return &ScheduleRow{}
	case ApprovalRulePart:
		return &ApprovalRuleRow{}
	case PersonPart:
		return &PersonRow{}
	}
	return nil
}
