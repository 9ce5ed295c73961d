package api

import (
	"time"

	"svc/internal/ci/runners"
	"svc/internal/project"
)

// runnerJSON is a runner in lists.
type runnerJSON struct {
	ID                 int64           `json:"id"`
	Description        string          `json:"description"`
	IPAddress          string          `json:"ip_address"` // always empty
	Active             bool            `json:"active"`     // deprecated
	Paused             bool            `json:"paused"`
	IsShared           bool            `json:"is_shared"`
	RunnerType         string          `json:"runner_type"`
	Name               *string         `json:"name"`
	Online             bool            `json:"online"`
	CreatedBy          *userPublicJSON `json:"created_by"`
	CreatedAt          stamp           `json:"created_at"`
	Status             string          `json:"status"`
	JobExecutionStatus string          `json:"job_execution_status"`
}

func (a *API) toRunner(r *runners.Runner) runnerJSON {
	now := a.Now()
	out := runnerJSON{
		ID: r.ID, Description: r.Description, Active: !r.Paused, Paused: r.Paused, IsShared: r.Type == runners.InstanceType,
		RunnerType: string(r.Type), Online: r.Status(now) == runners.Online, CreatedAt: toStamp(r.CreatedAt),
		Status: runnerState(r, now), JobExecutionStatus: executing(r.Busy),
	}
	if r.Manager != nil {
		out.Name = textOrNull(r.Manager.Info.Name)
	}
	if r.Creator != nil {
		u := toUserPublic(&a.Site, r.Creator, now)
		out.CreatedBy = &u
	}
	return out
}

// runnerState returns the status in API version 4, in which paused takes precedence
// over online and offline.
func runnerState(r *runners.Runner, now time.Time) string {
	state := r.Status(now)
	if r.Paused && (state == runners.Online || state == runners.Offline) {
		return "paused"
	}
	return string(state)
}

func executing(busy bool) string {
	if busy {
		return "active"
	}
	return "idle"
}

// runnerDetailJSON is the representation of a single runner.
type runnerDetailJSON struct {
	runnerJSON
	TagList         []string            `json:"tag_list"`
	RunUntagged     bool                `json:"run_untagged"`
	Locked          bool                `json:"locked"`
	MaximumTimeout  *int64              `json:"maximum_timeout"`
	AccessLevel     string              `json:"access_level"`
	Version         *string             `json:"version"`
	Revision        *string             `json:"revision"`
	Platform        *string             `json:"platform"`
	Architecture    *string             `json:"architecture"`
	ContactedAt     *stamp              `json:"contacted_at"`
	MaintenanceNote *string             `json:"maintenance_note"`
	Projects        []runnerProjectJSON `json:"projects"`
	Groups          []runnerGroupJSON   `json:"groups"`
}

// runnerProjectJSON is a project of a runner.
type runnerProjectJSON struct {
	projectNameJSON
	WebURL string `json:"web_url"`
}

// runnerGroupJSON is the group of a runner.
type runnerGroupJSON struct {
	ID     int64  `json:"id"`
	WebURL string `json:"web_url"`
	Name   string `json:"name"`
}

func (a *API) toRunnerDetail(c *call, r *runners.Runner) runnerDetailJSON {
	level := "not_protected"
	if r.ProtectedOnly {
		level = "ref_protected"
	}
	out := runnerDetailJSON{
		runnerJSON: a.toRunner(r), TagList: append([]string{}, r.Tags...), RunUntagged: r.RunUntagged, Locked: r.Locked, MaximumTimeout: r.MaximumTimeout,
		AccessLevel: level, ContactedAt: toStampOrNull(r.ContactedAt), MaintenanceNote: textOrNull(r.MaintenanceNote),
		Projects: mapped(r.Projects, func(p *project.Project) runnerProjectJSON { return toRunnerProject(c.site, p) }), Groups: []runnerGroupJSON{},
	}
	if m := r.Manager; m != nil {
		out.Version, out.Revision = textOrNull(m.Info.Version), textOrNull(m.Info.Revision)
		out.Platform, out.Architecture = textOrNull(m.Info.Platform), textOrNull(m.Info.Architecture)
	}
	if r.Group != nil {
		out.Groups = append(out.Groups, runnerGroupJSON{r.Group.ID, namespaceURL(c.site, r.Group), r.Group.Name})
	}
	return out
}

func toRunnerProject(site *Site, p *project.Project) runnerProjectJSON {
	return runnerProjectJSON{toProjectName(p), site.URL + "/" + p.FullPath}
}

// managerJSON is a runner manager.
type managerJSON struct {
	ID                 int64   `json:"id"`
	SystemID           string  `json:"system_id"`
	Version            *string `json:"version"`
	Revision           *string `json:"revision"`
	Platform           *string `json:"platform"`
	Architecture       *string `json:"architecture"`
	CreatedAt          stamp   `json:"created_at"`
	ContactedAt        *stamp  `json:"contacted_at"`
	IPAddress          string  `json:"ip_address"`
	Status             string  `json:"status"`
	JobExecutionStatus string  `json:"job_execution_status"`
}

func (a *API) toManager(m *runners.Manager) managerJSON {
	return managerJSON{
		m.ID, m.SystemID, textOrNull(m.Info.Version), textOrNull(m.Info.Revision), textOrNull(m.Info.Platform), textOrNull(m.Info.Architecture),
		toStamp(m.CreatedAt), toStampOrNull(m.ContactedAt), m.IP, string(m.Status(a.Now())), executing(m.Busy),
	}
}
