// Package archive writes and reads export files of groups and projects, entry by
// entry. Files are untrusted when read. The formats are described in
// docs/user/group-export.md and docs/user/project-export.md.
package archive

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/errs"
)

// The first and the last entry of a file, and the version of the format.
const (
	version      = 1
	manifestName = "manifest.json"
	totalsName   = "totals.json"
)

// Kind is the kind of a file: of groups or of a project.
type Kind struct {
	format string // in the manifest
	noun   string
	dir    string // of the entries; groups are numbered below it
	parts  []part // in their order
	newRow func(Part) any
}

// part is an entry that a group or project may have. With a pattern it is a directory
// of files whose names match.
type part struct {
	Part
	files *regexp.Regexp
}

// Groups is the kind of a file with a group and its subgroups.
func Groups() Kind {
	return Kind{format: "group-export", noun: "group", dir: "groups/", newRow: newRow, parts: []part{
		{Part: GroupPart}, {Part: AvatarPart}, {Part: LabelPart}, {Part: MilestonePart}, {Part: BoardPart}, {Part: BadgePart}, {Part: MemberPart}, {Part: WikiPart},
	}}
}

// Project is the kind of a file with a project.
func Project() Kind {
	return Kind{format: "project-export", noun: "project", dir: "project/", newRow: newProjectRow, parts: []part{
		{Part: ProjectPart}, {Part: AvatarPart}, {Part: RepositoryPart}, {Part: WikiPart}, {LFSPart, lfsName}, {Part: UploadPart}, {UploadFilePart, uploadName},
		{Part: MemberPart}, {Part: LabelPart}, {Part: MilestonePart}, {Part: ProtectedPart}, {Part: BoardPart}, {Part: BadgePart},
		{Part: IssuePart}, {Part: IssueLinkPart}, {Part: MergeRequestPart}, {Part: ReleasePart}, {Part: SnippetPart}, {SnippetFilePart, snippetName},
		{Part: NotePart}, {Part: CommentPart}, {Part: EventPart}, {Part: SchedulePart}, {Part: ApprovalRulePart}, {Part: PersonPart},
	}}
}

// Parts returns the parts of a group or project in the order of a file.
func (k Kind) Parts() []Part {
	list := make([]Part, len(k.parts))
	for n, p := range k.parts {
		list[n] = p.Part
	}
	return list
}

// HasRows reports whether a part has rows. Others are files.
func (k Kind) HasRows(p Part) bool { return k.newRow(p) != nil }

// rank returns the position of an entry in the order of a file; -1 if there is none.
func (k Kind) rank(p Part) int {
	return slices.IndexFunc(k.parts, func(q part) bool { return q.Part == p })
}

// Part is one of the entries that a group or project may have, in this order.
type Part string

// The parts.
const (
	GroupPart     Part = "group.ndjson"
	AvatarPart    Part = "avatar"
	LabelPart     Part = "labels.ndjson"
	MilestonePart Part = "milestones.ndjson"
	BoardPart     Part = "boards.ndjson"
	BadgePart     Part = "badges.ndjson"
	MemberPart    Part = "members.ndjson"
	WikiPart      Part = "wiki.bundle"
)

// limits of a file bound its size when it is unpacked.
type limits struct {
	line   int   // bytes of a row
	groups int   // maximum number
	rows   int64 // maximum number
	people int   // maximum number of different ones
	text   int64 // bytes of all rows
	whole  int64 // bytes of all entries
	small  int64 // bytes of the manifest and of the totals
	// A file may unpack to this size plus this multiple of its own size. Rows become
	// about twenty times larger, and repetitions of one byte a thousand times.
	free, growth int64
}

// MaxRow is the maximum size of a row in bytes.
const MaxRow = 8 << 20

func usualLimits() limits {
	return limits{
		line: MaxRow, groups: 100_000, rows: 10_000_000, people: 500_000, text: 4 << 30, whole: 1 << 40, small: 1 << 20, free: 64 << 20, growth: 250,
	}
}

// Manifest is the first entry.
type Manifest struct {
	Format     string    `json:"format"`
	Version    int       `json:"version"`
	ExportedAt time.Time `json:"exported_at"`
	Group      *Origin   `json:"group,omitempty"`
	Project    *Origin   `json:"project,omitempty"`
}

// Origin has the names of the top-level group or the project at the source.
type Origin struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	FullPath string `json:"full_path"`
}

// Totals are the last entry: they show that a file is complete.
type Totals struct {
	Groups     int64 `json:"groups"`
	Avatars    int64 `json:"avatars"`
	Labels     int64 `json:"labels"`
	Milestones int64 `json:"milestones"`
	Boards     int64 `json:"boards"`
	Badges     int64 `json:"badges"`
	Members    int64 `json:"members"`
	Wikis      int64 `json:"wikis"`

	// Of projects.
	Projects          int64 `json:"projects,omitempty"`
	Repositories      int64 `json:"repositories,omitempty"`
	LFSObjects        int64 `json:"lfs_objects,omitempty"`
	Uploads           int64 `json:"uploads,omitempty"`
	UploadFiles       int64 `json:"upload_files,omitempty"`
	ProtectedRefs     int64 `json:"protected_refs,omitempty"`
	Issues            int64 `json:"issues,omitempty"`
	IssueLinks        int64 `json:"issue_links,omitempty"`
	MergeRequests     int64 `json:"merge_requests,omitempty"`
	Releases          int64 `json:"releases,omitempty"`
	Snippets          int64 `json:"snippets,omitempty"`
	SnippetFiles      int64 `json:"snippet_repositories,omitempty"`
	Notes             int64 `json:"notes,omitempty"`
	CommitComments    int64 `json:"commit_comments,omitempty"`
	ResourceEvents    int64 `json:"resource_events,omitempty"`
	PipelineSchedules int64 `json:"pipeline_schedules,omitempty"`
	ApprovalRules     int64 `json:"approval_rules,omitempty"`
	Users             int64 `json:"users,omitempty"`
}

// of returns the counter of a part.
func (t *Totals) of(p Part) *int64 {
	return map[Part]*int64{
		GroupPart: &t.Groups, AvatarPart: &t.Avatars, LabelPart: &t.Labels, MilestonePart: &t.Milestones, BoardPart: &t.Boards, BadgePart: &t.Badges,
		MemberPart: &t.Members, WikiPart: &t.Wikis, ProjectPart: &t.Projects, RepositoryPart: &t.Repositories, LFSPart: &t.LFSObjects,
		UploadPart: &t.Uploads, UploadFilePart: &t.UploadFiles, ProtectedPart: &t.ProtectedRefs, IssuePart: &t.Issues, IssueLinkPart: &t.IssueLinks,
		MergeRequestPart: &t.MergeRequests, ReleasePart: &t.Releases, SnippetPart: &t.Snippets, SnippetFilePart: &t.SnippetFiles, NotePart: &t.Notes,
		CommentPart: &t.CommitComments, EventPart: &t.ResourceEvents, SchedulePart: &t.PipelineSchedules, ApprovalRulePart: &t.ApprovalRules, PersonPart: &t.Users,
	}[p]
}

// GroupRow is a group.
type GroupRow struct {
	Path        string      `json:"path"`           // relative to the top-level group of the file, where it is empty
	Name        string      `json:"name,omitempty"` // empty for the top-level group, which gets a new one
	Description string      `json:"description"`
	CreatedAt   time.Time   `json:"created_at"`
	WikiBranch  string      `json:"wiki_branch,omitempty"`
	Settings    SettingsRow `json:"settings"`
}

// SettingsRow are the settings of a group.
type SettingsRow struct {
	ProjectCreationLevel                      string       `json:"project_creation_level"`
	SubgroupCreationLevel                     string       `json:"subgroup_creation_level"`
	RequestAccessEnabled                      bool         `json:"request_access_enabled"`
	RequireTwoFactorAuthentication            bool         `json:"require_two_factor_authentication"` // not imported
	TwoFactorGracePeriod                      int64        `json:"two_factor_grace_period"`
	ShareWithGroupLock                        bool         `json:"share_with_group_lock"`
	MembershipLock                            bool         `json:"membership_lock"`
	LFSEnabled                                bool         `json:"lfs_enabled"`
	EmailsEnabled                             bool         `json:"emails_enabled"`
	MentionsDisabled                          bool         `json:"mentions_disabled"`
	AutoDevopsEnabled                         bool         `json:"auto_devops_enabled"` // not imported
	DefaultBranch                             string       `json:"default_branch"`
	SharedRunnersSetting                      string       `json:"shared_runners_setting"`
	WikiAccessLevel                           string       `json:"wiki_access_level"`
	OnlyAllowMergeIfPipelineSucceeds          bool         `json:"only_allow_merge_if_pipeline_succeeds"`
	AllowMergeOnSkippedPipeline               bool         `json:"allow_merge_on_skipped_pipeline"`
	OnlyAllowMergeIfAllDiscussionsAreResolved bool         `json:"only_allow_merge_if_all_discussions_are_resolved"`
	Approvals                                 ApprovalsRow `json:"approvals"`
}

// ApprovalsRow are the approval settings that a group enforces.
type ApprovalsRow struct {
	PreventAuthor     bool `json:"prevent_author"`
	PreventCommitters bool `json:"prevent_committers"`
	PreventOverriding bool `json:"prevent_overriding"`
	ResetOnPush       bool `json:"reset_on_push"`
	SelectiveRemovals bool `json:"selective_removals"`
	PasswordToApprove bool `json:"password_to_approve"`
}

// LabelRow is a label.
type LabelRow struct {
	Name        string    `json:"name"`
	Color       string    `json:"color"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// MilestoneRow is a milestone.
type MilestoneRow struct {
	IID         int64     `json:"iid"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	State       string    `json:"state"`
	StartDate   string    `json:"start_date"`
	DueDate     string    `json:"due_date"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Reference names a label or milestone. Group is the number of the directory that
// has it, or 0 if it belongs to a group above all groups of the file.
type Reference struct {
	Group int    `json:"group"`
	Title string `json:"title"`
}

// PersonRow is a user, who is identified by the digest of their address.
type PersonRow struct {
	Username string `json:"username"`
	Name     string `json:"name"`
	Email    string `json:"email_sha256,omitempty"`
}

// BoardRow is a board with its lists.
type BoardRow struct {
	Name        string     `json:"name"`
	HideBacklog bool       `json:"hide_backlog_list"`
	HideClosed  bool       `json:"hide_closed_list"`
	Milestone   *Reference `json:"milestone,omitempty"`
	Assignee    *PersonRow `json:"assignee,omitempty"`
	Weight      *int64     `json:"weight,omitempty"`
	Labels      []string   `json:"labels,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	Lists       []ListRow  `json:"lists,omitempty"`
}

// ListRow has a label, a milestone or an assignee.
type ListRow struct {
	Label     *Reference `json:"label,omitempty"`
	Milestone *Reference `json:"milestone,omitempty"`
	Assignee  *PersonRow `json:"assignee,omitempty"`
}

// BadgeRow is a badge.
type BadgeRow struct {
	Name      string    `json:"name"`
	LinkURL   string    `json:"link_url"`
	ImageURL  string    `json:"image_url"`
	CreatedAt time.Time `json:"created_at"`
}

// MemberRow is a member.
type MemberRow struct {
	PersonRow
	AccessLevel int64     `json:"access_level"`
	ExpiresAt   string    `json:"expires_at,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// newRow returns an empty row of a part; nil for a part without rows.
func newRow(p Part) any {
	switch p {
	case GroupPart:
		return &GroupRow{}
	case LabelPart:
		return &LabelRow{}
	case MilestonePart:
		return &MilestoneRow{}
	case BoardPart:
		return &BoardRow{}
	case BadgePart:
		return &BadgeRow{}
	case MemberPart:
		return &MemberRow{}
	}
	return nil
}

// decode reads one JSON object, strictly: no unknown or duplicate names, no names in
// another case, nothing after it, and no text that a database refuses.
func decode(text []byte, to any) error {
	if !utf8.Valid(text) {
		return errs.Invalid("it is not UTF-8")
	}
	if err := checkNames(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return errs.Invalid("%s", plainly(err))
	}
	return nil
}

// plainly returns the error text of the library without its prefix.
func plainly(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// checkNames reads a JSON object and checks its names.
func checkNames(text []byte) error {
	const deepest, values = 8, 50_000
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []map[string]bool // the names of each object that is open; nil for a list
	name := false              // the next token is a name
	for n := 0; ; n++ {
		if n > values { // each can take far more memory than bytes in the file
			return errs.Invalid("it has more than %d values", values)
		}
		token, err := d.Token()
		if err == io.EOF {
			return errs.Invalid("it is not a JSON object")
		}
		if err != nil {
			return errs.Invalid("%s", plainly(err))
		}
		if len(open) == 0 && token != json.Delim('{') {
			return errs.Invalid("it is not a JSON object")
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			if len(open) > deepest {
				return errs.Invalid("it is nested too deeply")
			}
		case string:
			if strings.IndexByte(t, 0) >= 0 {
				return errs.Invalid("it has a NUL character")
			}
			if name {
				top := open[len(open)-1]
				if top[t] || strings.Trim(t, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
					return errs.Invalid("it has the name %.50q twice, or in a form that is not known", t)
				}
				top[t] = true
				name = false
				continue
			}
		}
		if len(open) == 0 {
			break
		}
		name = open[len(open)-1] != nil
	}
	if _, err := d.Token(); err != io.EOF {
		return errs.Invalid("there is data after the JSON object")
	}
	return nil
}
