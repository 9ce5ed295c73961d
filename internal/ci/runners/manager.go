package runners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Manager is a runner manager: one process that uses the token of a runner.
type Manager struct {
	ID          int64
	RunnerID    int64
	SystemID    string
	Info        Info
	IP          string
	ContactedAt *time.Time
	CreatedAt   time.Time
	Busy        bool // it has a job
}

// Info is what a runner manager reports about itself. It is stored as JSON.
type Info struct {
	Name         string          `json:"name,omitempty"`
	Version      string          `json:"version,omitempty"`
	Revision     string          `json:"revision,omitempty"`
	Platform     string          `json:"platform,omitempty"`
	Architecture string          `json:"architecture,omitempty"`
	Executor     string          `json:"executor,omitempty"`
	Shell        string          `json:"shell,omitempty"`
	Features     map[string]bool `json:"features,omitempty"`
}

func (i *Info) equal(other *Info) bool {
	a, b := *i, *other
	a.Features, b.Features = nil, nil
	return reflect.DeepEqual(a, b) && maps.Equal(i.Features, other.Features)
}

// Status returns the status by the last contact.
func (m *Manager) Status(now time.Time) Status {
	return statusOf(m.ContactedAt, m.CreatedAt, now)
}

func (m *Manager) readInfo(text string) error {
	if err := json.Unmarshal([]byte(text), &m.Info); err != nil {
		return fmt.Errorf("info of runner manager %d: %w", m.ID, err)
	}
	return nil
}

const (
	// contactTouch is the precision of ContactedAt.
	contactTouch = 10 * time.Minute
	// noSystem is the system ID of runners that send none.
	noSystem = "<legacy>"
	// maxInfo limits the size of Info in JSON.
	maxInfo   = 16 << 10
	maxSystem = 64
)

// Contact is what a runner sends with each request.
type Contact struct {
	Token    string
	SystemID string
	Info     *Info // nil if the request has none
	IP       string
}

// errNoRunner is the error for a runner with an invalid token.
func errNoRunner() error { return errs.Forbidden("") }

// byToken returns the runner of a token. Forbidden if there is none or the token
// has expired.
func (s *Service) byToken(ctx context.Context, token string) (*Runner, error) {
	if token == "" {
		return nil, errNoRunner()
	}
	r, err := findByToken(ctx, s.DB, token)
	if errors.Is(err, db.ErrNoRows) {
		return nil, errNoRunner()
	}
	if err != nil {
		return nil, fmt.Errorf("find runner: %w", err)
	}
	if r.TokenExpiresAt != nil && !s.Now().Before(*r.TokenExpiresAt) {
		return nil, errNoRunner()
	}
	return r, nil
}

// Authenticate returns the runner and the runner manager of a request, and
// records the contact. Forbidden if the token is invalid.
func (s *Service) Authenticate(ctx context.Context, c Contact) (*Runner, *Manager, error) {
	r, err := s.byToken(ctx, c.Token)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.manager(ctx, r, c)
	if err != nil {
		return nil, nil, fmt.Errorf("note runner %d: %w", r.ID, err)
	}
	return r, m, nil
}

// manager returns the runner manager of a request. It is saved if it is new, has
// changed, or its last contact is older than contactTouch.
func (s *Service) manager(ctx context.Context, r *Runner, c Contact) (*Manager, error) {
	if c.SystemID == "" {
		c.SystemID = noSystem
	}
	if len(c.SystemID) > maxSystem {
		return nil, errs.Invalid("system_id is too long (maximum is %d characters)", maxSystem)
	}
	at := s.Now()
	m, err := findManager(ctx, s.DB, r.ID, c.SystemID)
	if errors.Is(err, db.ErrNoRows) {
		m, err = &Manager{RunnerID: r.ID, SystemID: c.SystemID, CreatedAt: at}, nil
	}
	if err != nil {
		return nil, err
	}
	same := c.Info == nil || m.Info.equal(c.Info)
	if m.ID != 0 && m.IP == c.IP && same && m.ContactedAt != nil && at.Sub(*m.ContactedAt) < contactTouch {
		return m, nil
	}
	if c.Info != nil {
		m.Info = *c.Info
	}
	now, err := json.Marshal(m.Info)
	if err != nil {
		return nil, err
	}
	if len(now) > maxInfo {
		return nil, errs.Invalid("info is too long")
	}
	m.IP, m.ContactedAt = c.IP, &at
	return m, s.DB.Tx(ctx, func(tx *db.Tx) error { return saveManager(ctx, tx, m, string(now)) })
}

// Verify checks the token of a runner: Forbidden if it is invalid.
func (s *Service) Verify(ctx context.Context, c Contact) (*Runner, error) {
	r, _, err := s.Authenticate(ctx, c)
	if err == nil {
		r.Secret = c.Token
	}
	return r, err
}

// Registration is the request of a runner that registers itself.
type Registration struct {
	Contact // Token is the registration token
	Change
}

// Register creates a runner by a registration token; its own token is in Secret.
// Forbidden if the registration token is invalid, Gone if the settings do not
// allow registration tokens.
func (s *Service) Register(ctx context.Context, n Registration) (*Runner, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	if !settings.AllowRegistrationTokens {
		return nil, errs.Gone("Runner registration tokens are not allowed here; create the runner first and use its token")
	}
	in, found, err := findRegistration(ctx, s.DB, n.Token)
	if err != nil {
		return nil, fmt.Errorf("register runner: %w", err)
	}
	if !found {
		return nil, errs.Forbidden("invalid token supplied")
	}
	at := s.Now()
	r := &Runner{Type: InstanceType, RunUntagged: true, CreatedAt: at, UpdatedAt: at, Secret: secret.Token("")}
	home := resolvedOwner{groupID: in.groupID, projectID: in.projectID}
	switch {
	case in.projectID != nil:
		if _, err := s.Projects.RequireChange(ctx, actor.System(), project.RefTo(*in.projectID), project.SettingsPart, project.NoAccess); err != nil {
			return nil, err
		}
		r.Type, r.Locked = ProjectType, true
	case in.groupID != nil:
		r.Type = GroupType
	}
	n.apply(r)
	if err := r.check(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insert(ctx, tx, r, home); err != nil {
			return err
		}
		in, err := s.entity(ctx, tx, r)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, actor.Actor{IP: n.IP}, r, in, "ci_runner_registered", audit.Details{Add: "runner", Message: "by a registration token"})
	})
	if err != nil {
		return nil, fmt.Errorf("register runner: %w", err)
	}
	if n.SystemID == "" { // the runner manager is created by its first request for a job
		return r, nil
	}
	n.Token = r.Secret
	_, err = s.manager(ctx, r, n.Contact)
	return r, err
}

// Unregister deletes the runner of a token. Forbidden if the token is invalid.
func (s *Service) Unregister(ctx context.Context, token, ip string) error {
	r, err := s.byToken(ctx, token)
	if err != nil {
		return err
	}
	return s.remove(ctx, actor.Actor{IP: ip}, r)
}

// UnregisterManager deletes one runner manager of a runner. Forbidden if the
// token is invalid, NotFound if there is no such runner manager.
func (s *Service) UnregisterManager(ctx context.Context, token, systemID string) error {
	r, err := s.byToken(ctx, token)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return deleteManager(ctx, tx, r.ID, systemID) })
	return db.NotFound(err, "System ID")
}

// ResetOwnToken replaces the token of a runner on its own request; the new one is
// in Secret. Forbidden if the old one is invalid.
func (s *Service) ResetOwnToken(ctx context.Context, token, ip string) (*Runner, error) {
	r, err := s.byToken(ctx, token)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if len(token) > len(tokenPrefix) && token[:len(tokenPrefix)] == tokenPrefix {
		prefix = tokenPrefix
	}
	return r, s.renewToken(ctx, actor.Actor{IP: ip}, r, prefix)
}

// TopicChanged is the notice that a runner has changed; its key is the ID.
const TopicChanged = "ci_runner"

func (s *Service) changed(ctx context.Context, tx *db.Tx, id int64) error {
	return s.Notices.Send(ctx, tx, TopicChanged, strconv.FormatInt(id, 10))
}
