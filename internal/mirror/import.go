package mirror

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/gitremote"
	"svc/internal/project"
	"svc/internal/queue"
)

// Phase is the current step of an import.
type Phase string

// The phases of an import, in order.
const (
	Waiting    Phase = ""
	Connecting Phase = "connecting"
	AwaitKey   Phase = "ssh_key"   // until the source accepts the SSH key
	Receiving  Phase = "receiving" // percent of the objects
	Checking   Phase = "checking"
	FetchLFS   Phase = "lfs"    // percent of the LFS objects
	Saving     Phase = "saving" // can no longer be canceled
	Ended      Phase = "ended"
)

// Import is the latest import of a project by URL.
type Import struct {
	ID        int64
	ProjectID int64
	UserID    int64  // who started it
	Run       string // identifies one run, and is its correlation ID
	Active    bool   // pending or running
	Phase     Phase
	Percent   int
	Bytes     int64 // received
	// Contents of the imported repository.
	Branches, Tags, LFSFound, LFSFetched int
	CreatedAt                            time.Time

	credentials string // sealed
}

// Source is the repository that is imported.
type Source struct {
	URL            string     // may contain credentials
	User, Password string     // instead of those in the URL
	AuthMethod     AuthMethod // ByPassword if empty; BySSHKey creates a key pair for the import
	HostKeys       []string   // accepted public keys of the SSH server
	Mirror         *Fields    // sets up a pull mirror of the source, unless it is nil
}

// credentials are stored as sealed JSON until an import ends.
type credentials struct {
	User, Password        string
	PrivateKey, PublicKey string
	HostKeys              []string
}

// sealedPlace returns the context that binds sealed credentials to the project.
func sealedPlace(projectID int64) string {
	return fmt.Sprintf("project_imports.credentials %d", projectID)
}

// Create creates a project and imports a repository into it, in a background job.
// The errors are those of project.Create; InvalidField if the URL is not allowed or
// the actor has too many active imports.
func (s *Service) Create(ctx context.Context, by actor.Actor, n project.NewProject, from Source) (*project.Project, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	address, c, err := s.source(ctx, from)
	if err != nil {
		return nil, err
	}
	if from.Mirror != nil && c.PrivateKey != "" {
		return nil, errs.InvalidField("import_auth_method", "ssh_public_key cannot be combined with mirror: set up a pull mirror of an empty project")
	}
	n.ImportURL = address
	n.Begin = func(ctx context.Context, tx *db.Tx, made *project.Project) error {
		if err := s.begin(ctx, tx, by, made.ID, c); err != nil || from.Mirror == nil {
			return err
		}
		return s.mirrorImport(ctx, tx, by, made, from)
	}
	made, err := s.Projects.Create(ctx, by, n)
	if err != nil {
		return nil, fmt.Errorf("import project: %w", err)
	}
	return made, nil
}

// address parses and checks the URL of a source.
func (s *Service) address(ctx context.Context, text string) (gitremote.Address, error) {
	a, err := gitremote.ParseAddress(text)
	if refusal, ok := errs.As(err); ok {
		return a, errs.InvalidField("import_url", "%s", refusal.Text)
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return a, err
	}
	u, err := url.Parse(a.URL)
	if err != nil || !policy.MayReach(u) {
		return a, errs.InvalidField("import_url", "is blocked: requests to the local network are not allowed")
	}
	return a, nil
}

// source checks a source, and returns its URL and credentials.
func (s *Service) source(ctx context.Context, from Source) (string, credentials, error) {
	var c credentials
	a, err := s.address(ctx, from.URL)
	if err != nil {
		return "", c, err
	}
	c.User, c.Password = a.User, a.Password
	if from.User != "" || from.Password != "" {
		c.User, c.Password = from.User, from.Password
	}
	if c.HostKeys, err = hostKeys(from.HostKeys); err != nil {
		return "", c, importField(err)
	}
	switch {
	case from.AuthMethod == BySSHKey && !a.SSH():
		return "", c, errs.InvalidField("import_auth_method", "ssh_public_key needs a URL that starts with ssh://")
	case a.SSH() && len(c.HostKeys) == 0:
		return "", c, errs.InvalidField("import_host_keys", "can't be blank for an ssh:// URL")
	case from.AuthMethod == BySSHKey:
		c.Password = ""
		c.PrivateKey, c.PublicKey, err = newKey()
	case from.AuthMethod != "" && from.AuthMethod != ByPassword:
		return "", c, errs.InvalidField("import_auth_method", "does not have a valid value")
	}
	return a.URL, c, err
}

// importField changes an error about host keys to name the parameter of imports.
func importField(err error) error {
	refusal, ok := errs.As(err)
	if !ok || len(refusal.Fields["host_keys"]) == 0 {
		return err
	}
	return errs.InvalidField("import_host_keys", "%s", refusal.Fields["host_keys"][0]).Because(err)
}

// DetectSource returns the host keys of the SSH server of a source, for signed-in
// users; nil for other protocols. InvalidField, with a message for the user, if they
// cannot be read.
func (s *Service) DetectSource(ctx context.Context, by actor.Actor, address string) ([]string, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	a, err := s.address(ctx, address)
	if err != nil {
		return nil, err
	}
	if !a.SSH() {
		return nil, nil
	}
	keys, err := s.detect(ctx, a)
	return keys, importField(err)
}

// begin adds an import and its background job.
func (s *Service) begin(ctx context.Context, tx *db.Tx, by actor.Actor, projectID int64, c credentials) error {
	if err := tx.Lock(ctx, "users", by.ID); err != nil {
		return err
	}
	n, err := countActive(ctx, tx, by.ID)
	if err != nil {
		return err
	}
	if n >= maxActive {
		return errs.InvalidField("import_url", "cannot be imported now: %d of your imports are in progress. Wait until one of them ends", n)
	}
	i := &Import{ProjectID: projectID, UserID: by.ID, Run: rand.Text(), CreatedAt: s.Now()}
	if c.User != "" || c.Password != "" || len(c.HostKeys) > 0 {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		i.credentials = s.Keys.Seal(text, sealedPlace(projectID))
	}
	if err := insertImport(ctx, tx, i); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, importWork{projectID, i.Run}, queue.In(lane), queue.Tries(5))
}

// Get returns the import of a project to users who can see the project; nil if it
// was not imported by URL. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, *Import, error) {
	p, err := s.Projects.Get(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	i, err := findImport(ctx, s.DB, p.ID)
	if errors.Is(err, db.ErrNoRows) {
		return p, nil, nil
	}
	return p, i, err
}

// opened returns the decrypted credentials of an import.
func (s *Service) opened(i *Import) (credentials, error) {
	var c credentials
	if i.credentials == "" {
		return c, nil
	}
	text, err := s.Keys.Open(i.credentials, sealedPlace(i.ProjectID))
	if err != nil {
		return c, err
	}
	if json.Unmarshal(text, &c) != nil {
		return c, errors.New("credentials of an import cannot be read")
	}
	return c, nil
}

// ImportKey returns the public SSH key of an active import; empty if it has none.
// The caller must check CanManage.
func (s *Service) ImportKey(i *Import) (string, error) {
	if i == nil || !i.Active {
		return "", nil
	}
	c, err := s.opened(i)
	return c.PublicKey, err
}

// CanManage reports whether an actor may cancel and retry the import of a project.
func (s *Service) CanManage(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.SettingsPart, project.Maintainer)
}

// canceled is the message of an import that a user canceled.
const canceled = "The import was canceled."

// Cancel stops the import of a project, for Maintainers. Conflict if no import is
// active, or it can no longer be canceled.
func (s *Service) Cancel(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		i, err := findImport(ctx, tx, p.ID)
		if errors.Is(err, db.ErrNoRows) || err == nil && !i.Active {
			return errs.Conflict("No import of the project is in progress.")
		}
		if err != nil {
			return err
		}
		if i.Phase == Saving {
			return errs.Conflict("The import is about to end and can no longer be canceled.")
		}
		if err := s.end(ctx, tx, i, project.ImportFailed, canceled); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, p, "project_import_canceled")
	})
	if err != nil {
		return fmt.Errorf("cancel import of project %d: %w", p.ID, err)
	}
	return nil
}

// end ends a run of an import in a transaction, and removes its credentials.
func (s *Service) end(ctx context.Context, tx *db.Tx, i *Import, status project.ImportStatus, failure string) error {
	if err := endImport(ctx, tx, i.ProjectID, i.Run); err != nil {
		return err
	}
	return s.Projects.ImportChanged(ctx, tx, i.ProjectID, status, failure)
}

// Retry imports a repository again after a failure, for Maintainers. Credentials are
// not stored, so they must be sent again. Conflict unless the import has failed and
// the repository is empty; InvalidField like Create.
func (s *Service) Retry(ctx context.Context, by actor.Actor, ref project.Ref, from Source) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	if err := by.RequireUser(); err != nil {
		return err
	}
	from.URL = cmp.Or(from.URL, p.ImportURL)
	address, c, err := s.source(ctx, from)
	if err != nil {
		return err
	}
	empty, err := s.Repos.Empty(ctx, p)
	if err != nil {
		return err
	}
	if !empty {
		return errs.Conflict("The repository is not empty.")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		now, err := s.Projects.ImportState(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if now.Import != project.ImportFailed || now.ImportType != project.FromGit {
			return errs.Conflict("Only a failed import can be retried.")
		}
		if err := s.Projects.ImportAgain(ctx, tx, p.ID, address); err != nil {
			return err
		}
		if err := s.begin(ctx, tx, by, p.ID, c); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, p, "project_import_retried")
	})
	if err != nil {
		return fmt.Errorf("retry import of project %d: %w", p.ID, err)
	}
	return nil
}

func (s *Service) audit(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, event string) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: event, Entity: p.Entity(), Details: audit.Details{Change: "import"},
	})
}
