package errortrack

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Key lets programs send errors of a project. It is public in web applications, so
// it grants nothing else.
type Key struct {
	ID        int64
	ProjectID int64
	Active    bool
	Public    string // the key itself
	CreatedAt time.Time

	sealed string
}

// maxKeys is the maximum number of keys of a project. Replacing a key needs two.
const maxKeys = 50

// ClientKeys lists the keys of a project to Maintainers and above.
func (s *Service) ClientKeys(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*Key], error) {
	in, err := s.maintainer(ctx, by, ref, false)
	if err != nil {
		return db.Page[*Key]{}, err
	}
	page, err := listKeys(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list client keys: %w", err)
	}
	for _, k := range page.Items {
		public, err := s.Keys.Open(k.sealed, sealedAt(in.ID))
		if err != nil {
			return page, fmt.Errorf("client key %d: %w", k.ID, err)
		}
		if k.Public = string(public); !by.ReadsSecrets() {
			k.Public = k.Public[:min(4, len(k.Public))] // enough to distinguish keys
		}
	}
	return page, nil
}

// CreateKey creates a key. Requires Maintainer. Invalid if there are too many.
func (s *Service) CreateKey(ctx context.Context, by actor.Actor, ref project.Ref) (*Key, error) {
	p, err := s.maintainer(ctx, by, ref, true)
	if err != nil {
		return nil, err
	}
	var made *Key
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil { // serializes counting
			return err
		}
		n, err := countKeys(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n >= maxKeys {
			return errs.Invalid("A project has at most %d client keys: delete one first", maxKeys)
		}
		made, err = s.makeKey(ctx, tx, by, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create client key: %w", err)
	}
	return made, nil
}

func (s *Service) makeKey(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project) (*Key, error) {
	k := &Key{ProjectID: p.ID, Active: true, Public: secret.Token(s.Name + "et_"), CreatedAt: s.Now()}
	k.sealed = s.Keys.Seal([]byte(k.Public), sealedAt(p.ID))
	if err := insertKey(ctx, tx, k, secret.Digest(k.Public)); err != nil {
		return nil, err
	}
	return k, s.record(ctx, tx, by, p, "error_tracking_client_key_created", k.target(), audit.Details{Add: "error_tracking_client_key"})
}

// firstKey creates a key for a project that has enabled error tracking and has
// none.
func (s *Service) firstKey(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, now *Setup) error {
	if !now.Active || !now.Integrated {
		return nil
	}
	n, err := countKeys(ctx, tx, p.ID)
	if err != nil || n > 0 {
		return err
	}
	_, err = s.makeKey(ctx, tx, by, p)
	return err
}

// TurnKey enables or disables a key. Requires Maintainer. NotFound.
func (s *Service) TurnKey(ctx context.Context, by actor.Actor, ref project.Ref, id int64, active bool) error {
	change := audit.Details{Change: "active", From: strconv.FormatBool(!active), To: strconv.FormatBool(active)}
	return s.alterKey(ctx, by, ref, id, "error_tracking_client_key_updated", change, func(tx *db.Tx, projectID int64) error {
		return turnKey(ctx, tx, projectID, id, active)
	})
}

// DeleteKey deletes a key; events sent with it are refused. Requires Maintainer.
// NotFound.
func (s *Service) DeleteKey(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	gone := audit.Details{Remove: "error_tracking_client_key"}
	return s.alterKey(ctx, by, ref, id, "error_tracking_client_key_destroyed", gone, func(tx *db.Tx, projectID int64) error {
		return deleteKey(ctx, tx, projectID, id)
	})
}

func (s *Service) alterKey(ctx context.Context, by actor.Actor, ref project.Ref, id int64, kind string, d audit.Details, alter func(tx *db.Tx, projectID int64) error) error {
	p, err := s.maintainer(ctx, by, ref, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := alter(tx, p.ID)
		if err != nil {
			return db.NotFound(err, "")
		}
		return s.record(ctx, tx, by, p, kind, (&Key{ID: id}).target(), d)
	})
	if err != nil {
		return fmt.Errorf("client key %d: %w", id, err)
	}
	return nil
}

// DSN returns the data source name for SDKs. They derive from it the URLs that
// they send to, below /api/v4/error_tracking/collector/api/.
func (s *Service) DSN(k *Key) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "" // not reached: the configuration was checked
	}
	u.User = url.User(k.Public)
	u.Path += "/api/v4/error_tracking/collector/" + strconv.FormatInt(k.ProjectID, 10)
	return u.String()
}

// KeyOf returns the key in a DSN; empty if dsn is not one.
func KeyOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.User == nil {
		return ""
	}
	return u.User.Username()
}

func (k *Key) target() audit.Target {
	return audit.Target{Type: "ErrorTracking::ClientKey", ID: k.ID, Details: strconv.FormatInt(k.ID, 10)}
}

func sealedAt(projectID int64) string { return "error_keys:" + strconv.FormatInt(projectID, 10) }
