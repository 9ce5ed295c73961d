package remote

import (
	"encoding/json"
	"time"
)

// The types in this file have the fields of answers of the v4 API that are read.
// Others are ignored, and missing ones are empty: servers differ. Some resemble rows of
// package archive, but the API defines these and our own file format those.

type userJSON struct {
	ID          int64      `json:"id"`
	Username    string     `json:"username"`
	Name        string     `json:"name"`
	Email       string     `json:"email"` // for administrators of the source
	ConfirmedAt *time.Time `json:"confirmed_at"`
	PublicEmail string     `json:"public_email"`
	Bot         bool       `json:"bot"`
}

type projectJSON struct {
	ID            int64     `json:"id"`
	Name          string    `json:"name"`
	Path          string    `json:"path"`
	FullPath      string    `json:"path_with_namespace"`
	Description   string    `json:"description"`
	DefaultBranch string    `json:"default_branch"`
	Topics        []string  `json:"topics"`
	TagList       []string  `json:"tag_list"` // of older servers
	Visibility    string    `json:"visibility"`
	Archived      bool      `json:"archived"`
	CreatedAt     time.Time `json:"created_at"`
	AvatarURL     string    `json:"avatar_url"`
	Repository    string    `json:"repository_access_level"`
}

type memberJSON struct {
	userJSON
	AccessLevel int64     `json:"access_level"`
	ExpiresAt   string    `json:"expires_at"`
	CreatedAt   time.Time `json:"created_at"`
}

type labelJSON struct {
	Name           string `json:"name"`
	Color          string `json:"color"`
	Description    string `json:"description"`
	Priority       *int64 `json:"priority"`
	IsProjectLabel *bool  `json:"is_project_label"`
}

type milestoneJSON struct {
	IID         int64     `json:"iid"`
	GroupID     *int64    `json:"group_id"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	State       string    `json:"state"`
	StartDate   string    `json:"start_date"`
	DueDate     string    `json:"due_date"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

type protectedJSON struct {
	Name              string       `json:"name"`
	Push              []accessJSON `json:"push_access_levels"`
	Merge             []accessJSON `json:"merge_access_levels"`
	Unprotect         []accessJSON `json:"unprotect_access_levels"`
	Create            []accessJSON `json:"create_access_levels"`
	AllowForcePush    bool         `json:"allow_force_push"`
	CodeOwnerApproval bool         `json:"code_owner_approval_required"`
	Inherited         bool         `json:"inherited"`
}

type accessJSON struct {
	AccessLevel *int64 `json:"access_level"`
	UserID      *int64 `json:"user_id"`
	GroupID     *int64 `json:"group_id"`
	DeployKeyID *int64 `json:"deploy_key_id"`
}

type boardJSON struct {
	Name        string         `json:"name"`
	HideBacklog bool           `json:"hide_backlog_list"`
	HideClosed  bool           `json:"hide_closed_list"`
	Milestone   *milestoneJSON `json:"milestone"`
	Assignee    *userJSON      `json:"assignee"`
	Labels      []labelJSON    `json:"labels"`
	Weight      *int64         `json:"weight"`
	Lists       []struct {
		Label     *labelJSON     `json:"label"`
		Milestone *milestoneJSON `json:"milestone"`
		Assignee  *userJSON      `json:"assignee"`
	} `json:"lists"`
}

type badgeJSON struct {
	Name     string `json:"name"`
	LinkURL  string `json:"link_url"`
	ImageURL string `json:"image_url"`
	Kind     string `json:"kind"`
}

type timeStatsJSON struct {
	Estimate int64 `json:"time_estimate"`
	Spent    int64 `json:"total_time_spent"`
}

type issuableJSON struct {
	ID               int64          `json:"id"`
	IID              int64          `json:"iid"`
	ProjectID        int64          `json:"project_id"`
	Title            string         `json:"title"`
	Description      string         `json:"description"`
	State            string         `json:"state"`
	CreatedAt        time.Time      `json:"created_at"`
	UpdatedAt        time.Time      `json:"updated_at"`
	ClosedAt         *time.Time     `json:"closed_at"`
	ClosedBy         *userJSON      `json:"closed_by"`
	Labels           []string       `json:"labels"`
	Milestone        *milestoneJSON `json:"milestone"`
	Assignees        []userJSON     `json:"assignees"`
	Author           *userJSON      `json:"author"`
	DiscussionLocked *bool          `json:"discussion_locked"`
	TimeStats        timeStatsJSON  `json:"time_stats"`
}

type issueJSON struct {
	issuableJSON
	DueDate      string `json:"due_date"`
	Confidential bool   `json:"confidential"`
	IssueType    string `json:"issue_type"`
	Weight       *int64 `json:"weight"`
}

type linkJSON struct {
	IID       int64     `json:"iid"`
	ProjectID int64     `json:"project_id"`
	LinkType  string    `json:"link_type"`
	CreatedAt time.Time `json:"link_created_at"`
	UpdatedAt time.Time `json:"link_updated_at"`
}

type mergeJSON struct {
	issuableJSON
	MergedBy           *userJSON  `json:"merged_by"`
	MergeUser          *userJSON  `json:"merge_user"`
	MergedAt           *time.Time `json:"merged_at"`
	PreparedAt         *time.Time `json:"prepared_at"`
	TargetBranch       string     `json:"target_branch"`
	SourceBranch       string     `json:"source_branch"`
	SourceProjectID    *int64     `json:"source_project_id"`
	Draft              bool       `json:"draft"`
	WorkInProgress     bool       `json:"work_in_progress"`
	SHA                string     `json:"sha"`
	MergeCommitSHA     string     `json:"merge_commit_sha"`
	SquashCommitSHA    string     `json:"squash_commit_sha"`
	Squash             bool       `json:"squash"`
	RemoveSourceBranch bool       `json:"force_remove_source_branch"`
	AllowCollaboration bool       `json:"allow_collaboration"`
	Reviewers          []userJSON `json:"reviewers"`
}

type versionJSON struct {
	ID        int64     `json:"id"`
	HeadSHA   string    `json:"head_commit_sha"`
	BaseSHA   string    `json:"base_commit_sha"`
	StartSHA  string    `json:"start_commit_sha"`
	RealSize  string    `json:"real_size"`
	CreatedAt time.Time `json:"created_at"`
}

type reviewerJSON struct {
	User      *userJSON `json:"user"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"created_at"`
}

type approvalsJSON struct {
	ApprovedBy []struct {
		User       *userJSON `json:"user"`
		ApprovedAt time.Time `json:"approved_at"`
	} `json:"approved_by"`
}

type commitJSON struct {
	ID string `json:"id"`
}

type discussionJSON struct {
	ID    string     `json:"id"`
	Notes []noteJSON `json:"notes"`
}

type noteJSON struct {
	ID        int64     `json:"id"`
	Type      string    `json:"type"`
	Body      string    `json:"body"`
	Author    *userJSON `json:"author"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	System    bool      `json:"system"`
	Internal  bool      `json:"internal"`
	// Confidential is the name of Internal in servers before 15.0.
	Confidential bool          `json:"confidential"`
	CommitID     string        `json:"commit_id"`
	Position     *positionJSON `json:"position"`
	Resolved     bool          `json:"resolved"`
	ResolvedBy   *userJSON     `json:"resolved_by"`
	ResolvedAt   *time.Time    `json:"resolved_at"`
	Suggestions  []struct {
		FromLine    int64  `json:"from_line"`
		ToLine      int64  `json:"to_line"`
		FromContent string `json:"from_content"`
		ToContent   string `json:"to_content"`
		Applied     bool   `json:"applied"`
	} `json:"suggestions"`
}

type positionJSON struct {
	BaseSHA  string `json:"base_sha"`
	StartSHA string `json:"start_sha"`
	HeadSHA  string `json:"head_sha"`
	OldPath  string `json:"old_path"`
	NewPath  string `json:"new_path"`
	Type     string `json:"position_type"`
	OldLine  *int64 `json:"old_line"`
	NewLine  *int64 `json:"new_line"`
	Range    *struct {
		Start pointJSON `json:"start"`
		End   pointJSON `json:"end"`
	} `json:"line_range"`
	Width  *int64   `json:"width"`
	Height *int64   `json:"height"`
	X      *float64 `json:"x"`
	Y      *float64 `json:"y"`
}

type pointJSON struct {
	Code    string `json:"line_code"`
	Type    string `json:"type"`
	OldLine *int64 `json:"old_line"`
	NewLine *int64 `json:"new_line"`
}

type awardJSON struct {
	Name      string    `json:"name"`
	User      *userJSON `json:"user"`
	CreatedAt time.Time `json:"created_at"`
}

type eventJSON struct {
	User      *userJSON      `json:"user"`
	CreatedAt time.Time      `json:"created_at"`
	Action    string         `json:"action"`
	State     string         `json:"state"`
	Label     *labelJSON     `json:"label"`
	Milestone *milestoneJSON `json:"milestone"`
	Weight    *int64         `json:"weight"`
}

type releaseJSON struct {
	TagName     string          `json:"tag_name"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	CreatedAt   time.Time       `json:"created_at"`
	ReleasedAt  time.Time       `json:"released_at"`
	Author      *userJSON       `json:"author"`
	Commit      *commitJSON     `json:"commit"`
	Milestones  []milestoneJSON `json:"milestones"`
	Assets      struct {
		Links []releaseLinkJSON `json:"links"`
	} `json:"assets"`
}

type releaseLinkJSON struct {
	ID             int64  `json:"id"`
	Name           string `json:"name"`
	URL            string `json:"url"`
	DirectAssetURL string `json:"direct_asset_url"`
	LinkType       string `json:"link_type"`
}

type snippetJSON struct {
	ID          int64     `json:"id"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Visibility  string    `json:"visibility"`
	Author      *userJSON `json:"author"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	FileName    string    `json:"file_name"`
	Files       []struct {
		Path string `json:"path"`
	} `json:"files"`
}

type scheduleJSON struct {
	Description string    `json:"description"`
	Ref         string    `json:"ref"`
	Cron        string    `json:"cron"`
	Timezone    string    `json:"cron_timezone"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

type ruleJSON struct {
	Name              string     `json:"name"`
	RuleType          string     `json:"rule_type"`
	ApprovalsRequired int64      `json:"approvals_required"`
	AllProtected      bool       `json:"applies_to_all_protected_branches"`
	Users             []userJSON `json:"users"`
	Groups            []struct {
		ID int64 `json:"id"`
	} `json:"groups"`
	ProtectedBranches []struct {
		Name string `json:"name"`
	} `json:"protected_branches"`
}

type variableJSON struct {
	Key   string `json:"key"`
	Scope string `json:"environment_scope"`
}

type uploadJSON struct {
	Size       int64     `json:"size"`
	Filename   string    `json:"filename"`
	CreatedAt  time.Time `json:"created_at"`
	UploadedBy *userJSON `json:"uploaded_by"`
}

type groupJSON struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Path        string    `json:"path"`
	FullPath    string    `json:"full_path"`
	Description string    `json:"description"`
	AvatarURL   string    `json:"avatar_url"`
	CreatedAt   time.Time `json:"created_at"`
	Visibility  string    `json:"visibility"`
}

// fieldsJSON is an object whose fields are looked up by name.
type fieldsJSON map[string]json.RawMessage
