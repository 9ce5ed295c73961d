package mirror

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/gitremote"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/re2"
)

// Direction is the direction of a mirror: push or pull.
type Direction string

// The directions of mirrors.
const (
	Push Direction = "push" // from the project to the other server
	Pull Direction = "pull"
)

// AuthMethod is how a mirror authenticates: password or ssh_public_key.
type AuthMethod string

// The authentication methods.
const (
	ByPassword AuthMethod = "password"
	BySSHKey   AuthMethod = "ssh_public_key"
)

// Status is the state of the latest update of a mirror.
type Status string

// The states of updates.
const (
	StatusNone      Status = "none"
	StatusScheduled Status = "scheduled"
	StatusStarted   Status = "started"
	StatusFinished  Status = "finished"
	StatusFailed    Status = "failed"
	StatusRetry     Status = "to_retry" // failed, and will be retried
)

// Active reports whether an update is pending or running.
func (s Status) Active() bool { return s == StatusScheduled || s == StatusStarted }

// Mirror is a repository on another server that a project is pushed to or pulled
// from.
type Mirror struct {
	ID               int64
	ProjectID        int64
	UserID           *int64 // who set it up; nil if the account was deleted
	Direction        Direction
	Enabled          bool
	URL              string // without credentials
	HasCredentials   bool
	AuthMethod       AuthMethod
	PublicKey        string   // of BySSHKey, as a line of an authorized_keys file
	HostKeys         []string // accepted public keys of the SSH server
	OnlyProtected    bool
	KeepDiverged     bool   // do not overwrite refs that have diverged
	BranchRegex      string // only branches that match; empty for all
	TriggerPipelines bool   // for pulled commits
	Status           Status
	LastError        string
	StartedAt        *time.Time // of the latest update
	UpdatedAt        *time.Time // end of the latest update
	SucceededAt      *time.Time // end of the latest successful update
	Failures         int        // since the latest success
	CreatedAt        time.Time

	sealed string // secrets
}

// MaskedURL returns the URL with asterisks in place of the credentials.
func (m *Mirror) MaskedURL() string {
	scheme, rest, _ := strings.Cut(m.URL, "://")
	if !m.HasCredentials {
		return m.URL
	}
	return scheme + "://*****:*****@" + rest
}

// SSH reports whether the mirror is accessed over SSH.
func (m *Mirror) SSH() bool { return strings.HasPrefix(m.URL, "ssh://") }

// Fingerprints returns the SHA256 fingerprints of the host keys.
func (m *Mirror) Fingerprints() []string {
	list := []string{}
	for _, line := range m.HostKeys {
		list = append(list, gitremote.Fingerprint(line))
	}
	return list
}

// secrets are stored as sealed JSON.
type secrets struct{ User, Password, PrivateKey string }

// place returns the context that binds sealed secrets to the mirror.
func (m *Mirror) place() string { return fmt.Sprintf("mirrors.secrets %d", m.ID) }

func (s *Service) secrets(m *Mirror) (secrets, error) {
	var found secrets
	if m.sealed == "" {
		return found, nil
	}
	text, err := s.Keys.Open(m.sealed, m.place())
	if err != nil {
		return found, err
	}
	if json.Unmarshal(text, &found) != nil {
		return found, errors.New("secrets of a mirror cannot be read")
	}
	return found, nil
}

func (s *Service) seal(m *Mirror, c secrets) error {
	if c == (secrets{}) {
		m.sealed = ""
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	m.sealed = s.Keys.Seal(text, m.place())
	return nil
}

// Fields are changes to a mirror; nil keeps the default or the current value.
type Fields struct {
	URL              *string // may contain credentials, which are replaced with it
	User, Password   *string
	Enabled          *bool
	AuthMethod       *string
	HostKeys         *[]string
	OnlyProtected    *bool
	KeepDiverged     *bool
	BranchRegex      *string
	TriggerPipelines *bool
	UserID           *int64 // author of pulled changes; for administrators
}

const (
	maxPushMirrors = 10 // of a project
	maxRegex       = 255
	maxHostKeys    = 10
)

// apply validates changes and applies them to m. Errors use the parameter names of
// the push mirror API.
func (s *Service) apply(ctx context.Context, m *Mirror, f Fields) error {
	c, err := s.secrets(m)
	if err != nil {
		return err
	}
	if f.URL != nil {
		a, err := s.mirrorAddress(ctx, *f.URL)
		if err != nil {
			return err
		}
		m.URL, c.User, c.Password = a.URL, a.User, a.Password
	}
	patch.Set(&c.User, f.User)
	patch.Set(&c.Password, f.Password)
	patch.Set(&m.Enabled, f.Enabled)
	patch.Set(&m.KeepDiverged, f.KeepDiverged)
	patch.Set(&m.TriggerPipelines, f.TriggerPipelines)
	if err := m.filter(f); err != nil {
		return err
	}
	if f.AuthMethod != nil {
		m.AuthMethod = AuthMethod(*f.AuthMethod)
	}
	if f.HostKeys != nil {
		if m.HostKeys, err = hostKeys(*f.HostKeys); err != nil {
			return err
		}
	}
	switch {
	case m.AuthMethod == BySSHKey && !m.SSH():
		return errs.InvalidField("auth_method", "ssh_public_key needs a URL that starts with ssh://")
	case m.AuthMethod == BySSHKey:
		c.Password = ""
		if c.PrivateKey == "" {
			if c.PrivateKey, m.PublicKey, err = newKey(); err != nil {
				return err
			}
		}
	case m.AuthMethod == ByPassword:
		c.PrivateKey, m.PublicKey = "", ""
	default:
		return errs.InvalidField("auth_method", "does not have a valid value")
	}
	m.HasCredentials = c.User != "" || c.Password != ""
	return s.seal(m, c)
}

// filter sets which branches are mirrored: the protected ones, or those that match a
// regular expression.
func (m *Mirror) filter(f Fields) error {
	if f.OnlyProtected != nil && *f.OnlyProtected && f.BranchRegex != nil && *f.BranchRegex != "" {
		return errs.InvalidField("mirror_branch_regex", "cannot be used with protected branches only")
	}
	if f.OnlyProtected != nil {
		if m.OnlyProtected = *f.OnlyProtected; m.OnlyProtected {
			m.BranchRegex = ""
		}
	}
	if f.BranchRegex == nil {
		return nil
	}
	if len(*f.BranchRegex) > maxRegex {
		return errs.InvalidField("mirror_branch_regex", "is too long (maximum is %d characters)", maxRegex)
	}
	if _, err := re2.Compile(*f.BranchRegex); err != nil {
		return errs.InvalidField("mirror_branch_regex", "is not a valid regular expression (RE2)")
	}
	if m.BranchRegex = *f.BranchRegex; m.BranchRegex != "" {
		m.OnlyProtected = false
	}
	return nil
}

// hostKeys parses the host keys that a user entered.
func hostKeys(list []string) ([]string, error) {
	var keys []string
	for _, text := range list {
		if strings.TrimSpace(text) == "" {
			continue
		}
		line, ok := gitremote.ParseHostKey(text)
		if !ok {
			return nil, errs.InvalidField("host_keys", "must be public SSH keys, such as \"ssh-ed25519 AAAA…\"")
		}
		if !slices.Contains(keys, line) {
			keys = append(keys, line)
		}
	}
	if len(keys) > maxHostKeys {
		return nil, errs.InvalidField("host_keys", "are too many (maximum is %d)", maxHostKeys)
	}
	return keys, nil
}

// newKey generates an SSH key pair.
func newKey() (private, public string, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return "", "", err
	}
	shown, err := ssh.NewPublicKey(pub)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(shown))), nil
}

// mirrorAddress parses and checks the URL of a mirror.
func (s *Service) mirrorAddress(ctx context.Context, text string) (gitremote.Address, error) {
	a, err := gitremote.ParseAddress(text)
	if refusal, ok := errs.As(err); ok {
		return a, errs.InvalidField("url", "%s", refusal.Text)
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return a, err
	}
	u, err := url.Parse(a.URL)
	if err != nil || !policy.MayReach(u) {
		return a, errs.InvalidField("url", "is blocked: requests to the local network are not allowed")
	}
	return a, nil
}

// PushMirrors lists the push mirrors of a project, for Maintainers.
func (s *Service) PushMirrors(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*Mirror], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*Mirror]{}, err
	}
	page, err := listMirrors(ctx, s.DB, p.ID, Push, pg)
	if err != nil {
		return page, fmt.Errorf("list push mirrors: %w", err)
	}
	return page, nil
}

// PushMirror returns a push mirror to Maintainers. NotFound.
func (s *Service) PushMirror(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*Mirror, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	m, err := findMirrorOf(ctx, s.DB, p.ID, Push, id)
	return m, db.NotFound(err, "")
}

// PublicKey returns the public SSH key of a push mirror to Maintainers. NotFound,
// also if the mirror has none.
func (s *Service) PublicKey(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (string, error) {
	m, err := s.PushMirror(ctx, by, ref, id)
	if err != nil {
		return "", err
	}
	if m.PublicKey == "" {
		return "", errs.NotFound("Public key")
	}
	return m.PublicKey, nil
}

// change returns a project to Maintainers, who may set up mirrors.
func (s *Service) change(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
}

// requireAvailable returns Forbidden if the setting limits new mirrors to
// administrators and the actor is not one.
func (s *Service) requireAvailable(ctx context.Context, by actor.Actor) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	if !settings.Mirrors && !by.Admin {
		return errs.Forbidden("Only administrators can set up mirrors on this instance.")
	}
	return nil
}

// CanAdd reports whether an actor who may change the settings of a project may add
// mirrors to it.
func (s *Service) CanAdd(ctx context.Context, by actor.Actor) (bool, error) {
	err := s.requireAvailable(ctx, by)
	if errs.Is(err, errs.KindForbidden) {
		return false, nil
	}
	return err == nil, err
}

// CreatePushMirror adds a push mirror to a project, for Maintainers, or only for
// administrators, depending on the setting. An enabled mirror is updated
// immediately. Invalid if a field is not valid or the project has too many mirrors;
// Forbidden if it is archived.
func (s *Service) CreatePushMirror(ctx context.Context, by actor.Actor, ref project.Ref, f Fields) (*Mirror, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := s.requireAvailable(ctx, by); err != nil {
		return nil, err
	}
	m := &Mirror{ProjectID: p.ID, UserID: userID(by), Direction: Push, AuthMethod: ByPassword, Status: StatusNone, CreatedAt: s.Now()}
	if err := s.apply(ctx, m, f); err != nil { // validate before anything is stored
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		n, err := countMirrors(ctx, tx, p.ID, Push)
		if err != nil {
			return err
		}
		if n >= maxPushMirrors {
			return errs.InvalidField("base", "Maximum number of push mirrors of a project (%d) exceeded", maxPushMirrors)
		}
		return s.insert(ctx, tx, by, p, m, f)
	})
	if err != nil {
		return nil, fmt.Errorf("create push mirror: %w", err)
	}
	return s.find(ctx, m.ID)
}

// insert adds a mirror. Its secrets are sealed after the insert, because the sealing
// depends on its ID.
func (s *Service) insert(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, m *Mirror, f Fields) error {
	if err := insertMirror(ctx, tx, m); err != nil {
		return err
	}
	m.sealed = ""
	if err := s.apply(ctx, m, f); err != nil {
		return err
	}
	if err := saveMirror(ctx, tx, m); err != nil {
		return err
	}
	if m.Enabled {
		if err := s.begun(ctx, tx, p, m); err != nil {
			return err
		}
	}
	return s.auditMirror(ctx, tx, by, p, m, "created", audit.Details{Add: string(m.Direction) + "_mirror", Message: m.MaskedURL()})
}

// begun starts the first update of an enabled mirror: immediately, or after the
// import of the project.
func (s *Service) begun(ctx context.Context, tx *db.Tx, p *project.Project, m *Mirror) error {
	if m.Direction == Pull && p.Import.Pending() {
		return savePaused(ctx, tx, m.ID, m.nextPull(s.Now()))
	}
	return s.start(ctx, tx, m.ID)
}

// find returns a mirror that was just saved.
func (s *Service) find(ctx context.Context, id int64) (*Mirror, error) {
	m, err := findMirror(ctx, s.DB, id)
	return m, db.NotFound(err, "")
}

func userID(by actor.Actor) *int64 {
	if by.ID == 0 {
		return nil
	}
	return &by.ID
}

// withPushMirror calls f with a push mirror of a project, in a transaction that
// locks the project. NotFound.
func (s *Service) withPushMirror(ctx context.Context, p *project.Project, id int64, f func(tx *db.Tx, m *Mirror) error) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		m, err := findMirrorOf(ctx, tx, p.ID, Push, id)
		if err != nil {
			return db.NotFound(err, "")
		}
		return f(tx, m)
	})
}

// UpdatePushMirror changes a push mirror, for Maintainers. A mirror that becomes
// enabled is updated immediately. The errors are those of CreatePushMirror, and
// NotFound.
func (s *Service) UpdatePushMirror(ctx context.Context, by actor.Actor, ref project.Ref, id int64, f Fields) (*Mirror, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	err = s.withPushMirror(ctx, p, id, func(tx *db.Tx, m *Mirror) error {
		return s.update(ctx, tx, by, p, m, f)
	})
	if err != nil {
		return nil, fmt.Errorf("update push mirror %d: %w", id, err)
	}
	return s.find(ctx, id)
}

func (s *Service) update(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, m *Mirror, f Fields) error {
	was := m.Enabled
	if err := s.apply(ctx, m, f); err != nil {
		return err
	}
	if err := saveMirror(ctx, tx, m); err != nil {
		return err
	}
	if m.Enabled && !was {
		if err := s.begun(ctx, tx, p, m); err != nil {
			return err
		}
	}
	return s.auditMirror(ctx, tx, by, p, m, "updated", audit.Details{Change: string(m.Direction) + "_mirror", Message: m.MaskedURL()})
}

// SyncPushMirror starts an update of a push mirror, for Maintainers. Invalid if it
// is disabled; NotFound.
func (s *Service) SyncPushMirror(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.withPushMirror(ctx, p, id, func(tx *db.Tx, m *Mirror) error {
		if !m.Enabled {
			return errs.Invalid("The push mirror is disabled. Enable it first.")
		}
		return s.start(ctx, tx, m.ID)
	})
	if err != nil {
		return fmt.Errorf("update push mirror %d now: %w", id, err)
	}
	return nil
}

// DeletePushMirror removes a push mirror, for Maintainers. The remote repository is
// not changed. A running update is canceled. NotFound.
func (s *Service) DeletePushMirror(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.withPushMirror(ctx, p, id, func(tx *db.Tx, m *Mirror) error {
		return s.remove(ctx, tx, by, p, m)
	})
	if err != nil {
		return fmt.Errorf("delete push mirror %d: %w", id, err)
	}
	return nil
}

func (s *Service) remove(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, m *Mirror) error {
	if err := deleteMirror(ctx, tx, m.ID); err != nil {
		return err
	}
	return s.auditMirror(ctx, tx, by, p, m, "deleted", audit.Details{Remove: string(m.Direction) + "_mirror", Message: m.MaskedURL()})
}

// DetectHostKeys returns the host keys of the SSH server of a URL, for Maintainers
// of a project. Invalid, with a message for the user, if they cannot be read.
func (s *Service) DetectHostKeys(ctx context.Context, by actor.Actor, ref project.Ref, address string) ([]string, error) {
	if _, err := s.change(ctx, by, ref); err != nil {
		return nil, err
	}
	a, err := s.mirrorAddress(ctx, address)
	if err != nil {
		return nil, err
	}
	if !a.SSH() {
		return nil, errs.InvalidField("url", "must start with ssh:// to have host keys")
	}
	return s.detect(ctx, a)
}

func (s *Service) detect(ctx context.Context, a gitremote.Address) ([]string, error) {
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	keys, err := gitremote.DetectHostKeys(ctx, a, policy)
	var failure *gitremote.Failure
	switch {
	case errors.As(err, &failure):
		return nil, errs.InvalidField("host_keys", "were not found: %s", failure.Text).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errs.InvalidField("host_keys", "were not found: the server did not answer in time").Because(err)
	}
	return keys, err
}

// detectTime is the time limit for detecting host keys.
const detectTime = 20 * time.Second

func (s *Service) auditMirror(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, m *Mirror, what string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: string(m.Direction) + "_mirror_" + what, Entity: p.Entity(), Target: audit.Target{Type: "Mirror", ID: m.ID, Details: m.MaskedURL()}, Details: d,
	})
}
