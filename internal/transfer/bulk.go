package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/outbound"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/transfer/remote"
)

// BulkImport is an import of groups and projects from another server, by its API.
type BulkImport struct {
	ID        int64
	UserID    *int64 // the user who started it; nil if deleted
	SourceURL string
	State     State
	Failures  bool // something was not imported
	CreatedAt time.Time
	UpdatedAt time.Time

	token string // sealed
}

// Going reports whether the import is pending or running.
func (b *BulkImport) Going() bool { return b.State == Created || b.State == Started }

// The states of a bulk import and its entities, besides Started, Finished and Failed.
const (
	Created  State = "created"
	Canceled State = "canceled"
)

// Entity is a group or project of a bulk import.
type Entity struct {
	ID         int64
	ImportID   int64  // of the bulk import
	ParentID   *int64 // the entity of the group that contains it at the source
	Project    bool
	SourcePath string // full path at the source
	Slug       string
	Namespace  string // full path of the destination; empty at the top
	Projects   bool   // of a group: its projects are imported too
	Members    bool   // memberships are imported too
	State      State
	Phase      string // the current step; "importing" after the last
	Steps      int64  // steps that are complete
	Total      int64
	GroupID    *int64 // once it exists
	ProjectID  *int64
	Failures   int64
	Stats      map[string]Stat
	CreatedAt  time.Time
	UpdatedAt  time.Time

	tries  int64
	run    int64  // the number of the current or last run
	stored int64  // the run that has stored the last complete step
	fileID *int64 // the import of the export file that was made from it
}

// Stat has the numbers of a relation.
type Stat struct {
	Source   int64 `json:"source"`
	Fetched  int64 `json:"fetched"`
	Imported int64 `json:"imported"`
}

// Going reports whether the entity is pending or running.
func (e *Entity) Going() bool { return e.State == Created || e.State == Started }

// Destination is the full path of the new group or project.
func (e *Entity) Destination() string { return path.Join(e.Namespace, e.Slug) }

// Percent is the progress. Reading is most of the work.
func (e *Entity) Percent() int { return percent(e.State, e.Steps, e.Total+1) }

// importing is the phase of an entity whose content was read.
const importing = "importing"

// Failure is an object or a relation that was not imported.
type Failure struct {
	ID        int64
	Relation  string
	Title     string
	Path      string // of its page, relative to the URL of the source; may be empty
	Message   string
	CreatedAt time.Time
}

// MaxFailures is the maximum number of stored failures of an entity; others are
// counted.
const MaxFailures = 1000

// NewBulkImport has the fields of a new bulk import.
type NewBulkImport struct {
	URL      string
	Token    string
	Entities []NewEntity
}

// NewEntity has the fields of an entity.
type NewEntity struct {
	Project    bool
	SourcePath string
	Slug       string
	Namespace  string
	Projects   bool
	Members    bool
}

// The limits of bulk imports.
const (
	maxEntities = 500 // of a request
	maxActive   = 5   // of a user
	maxToken    = 1024
)

// BulkImportWork reads an entity of a bulk import in the background.
type BulkImportWork struct {
	EntityID int64 `json:"entity_id"`
}

// Kind implements queue.Work.
func (BulkImportWork) Kind() string { return "transfer_bulk_import" }

// bulkLane is the queue lane for reading from other servers.
const bulkLane = "bulk_import"

// StartBulkImport imports groups and projects from another server, in the background.
// It requires permission to create the groups and projects; Unauthorized, Forbidden,
// NotFound, Invalid.
func (s *Service) StartBulkImport(ctx context.Context, by actor.Actor, n NewBulkImport) (*BulkImport, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	address, err := s.checkSource(ctx, n.URL, n.Token)
	if err != nil {
		return nil, err
	}
	if len(n.Entities) == 0 || len(n.Entities) > maxEntities {
		return nil, errs.InvalidField("entities", "must be between 1 and %d", maxEntities)
	}
	there := map[string]bool{}
	for i := range n.Entities {
		e := &n.Entities[i]
		if err := s.checkEntity(ctx, by, e); err != nil {
			return nil, err
		}
		to := strings.ToLower(path.Join(e.Namespace, e.Slug))
		if there[to] {
			return nil, errs.InvalidField("entities", "have the destination %.200q twice", to)
		}
		there[to] = true
	}
	now := s.Now()
	b := &BulkImport{UserID: &by.ID, SourceURL: address, State: Created, CreatedAt: now, UpdatedAt: now}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "users", by.ID); err != nil {
			return err
		}
		active, err := countActive(ctx, tx, by.ID)
		if err != nil {
			return err
		}
		if active >= maxActive {
			return errs.Invalid("%d of your imports are in progress. Wait until one of them ends, or cancel it.", active)
		}
		if err := insertBulkImport(ctx, tx, b); err != nil {
			return err
		}
		b.token = s.Keys.Seal([]byte(n.Token), tokenPlace(b.ID))
		if err := saveToken(ctx, tx, b); err != nil {
			return err
		}
		for _, e := range n.Entities {
			entity := &Entity{ImportID: b.ID, Project: e.Project, SourcePath: e.SourcePath, Slug: e.Slug, Namespace: e.Namespace, Projects: e.Projects, Members: e.Members}
			if err := s.addEntity(ctx, tx, entity); err != nil {
				return err
			}
		}
		return audit.Record(ctx, tx, by, now, audit.Event{
			Type: "bulk_import_created", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
			Target: audit.Target{Type: "BulkImport", ID: b.ID, Details: b.SourceURL}, Details: audit.Details{Add: "import", Message: "Import from another server started"},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("start bulk import: %w", err)
	}
	return b, nil
}

// tokenPlace binds a sealed token to its import.
func tokenPlace(id int64) string { return fmt.Sprintf("bulk_imports.token %d", id) }

// checkSource returns the normalized URL of a source. Invalid.
func (s *Service) checkSource(ctx context.Context, address, token string) (string, error) {
	clean, err := remote.ParseURL(address)
	if refusal, ok := errs.As(err); ok {
		return "", errs.InvalidField("url", "%s", refusal.Text)
	}
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errs.InvalidField("access_token", "is missing or invalid")
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(clean)
	if err != nil || !policy.MayReach(u) {
		return "", errs.InvalidField("url", "is blocked: requests to the local network are not allowed")
	}
	return clean, nil
}

func (s *Service) policy(ctx context.Context) (outbound.Policy, error) {
	settings, err := s.Settings.Current(ctx)
	return settings.Outbound(), err
}

// checkEntity checks an entity, and that the actor may create its group or project.
func (s *Service) checkEntity(ctx context.Context, by actor.Actor, e *NewEntity) error {
	e.SourcePath, e.Namespace = strings.Trim(e.SourcePath, "/"), strings.Trim(e.Namespace, "/")
	if !remote.CheckPath(e.SourcePath) {
		return errs.InvalidField("source_full_path", "must be the full path of a group or project, such as group/subgroup/project")
	}
	if e.Slug == "" {
		e.Slug = path.Base(e.SourcePath)
	}
	place, err := s.destination(ctx, by, e.Project, e.Namespace)
	if err != nil {
		return err
	}
	if e.Project {
		return s.Projects.CheckProject(ctx, by, project.NewProject{Name: e.Slug, Path: e.Slug, NamespaceID: place})
	}
	return s.Projects.CheckGroup(ctx, by, project.NewGroup{Name: e.Slug, Path: e.Slug, ParentID: place})
}

// destination returns the ID of a namespace that the actor can see; nil for the top.
func (s *Service) destination(ctx context.Context, by actor.Actor, ofProject bool, namespace string) (*int64, error) {
	if namespace == "" {
		if ofProject {
			return nil, errs.InvalidField("destination_namespace", "is missing: a project needs a group or a user namespace")
		}
		return nil, nil
	}
	n, err := s.Projects.Namespace(ctx, by, project.Ref(namespace))
	if err != nil {
		return nil, err
	}
	if !ofProject && n.Kind != project.GroupNamespace {
		return nil, errs.InvalidField("destination_namespace", "must be a group")
	}
	return &n.ID, nil
}

// queueTries is the maximum number of attempts of the job of an entity: larger than
// the number for all steps, because the attempts of each step are counted
// separately.
const queueTries = 200

// addEntity adds an entity and its background job.
func (s *Service) addEntity(ctx context.Context, tx *db.Tx, e *Entity) error {
	e.State, e.CreatedAt, e.UpdatedAt = Created, s.Now(), s.Now()
	if err := insertEntity(ctx, tx, e); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, BulkImportWork{e.ID}, queue.In(bulkLane), queue.Tries(queueTries))
}

// BulkImport returns a bulk import, for the user who started it and administrators;
// NotFound.
func (s *Service) BulkImport(ctx context.Context, by actor.Actor, id int64) (*BulkImport, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	b, err := findBulkImport(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("find bulk import: %w", err)
	}
	if b == nil || !by.Admin && (b.UserID == nil || *b.UserID != by.ID) {
		return nil, errs.NotFound("Import")
	}
	return b, nil
}

// BulkFilter selects bulk imports or their entities.
type BulkFilter struct {
	State     State // any if empty
	Ascending bool
}

// BulkImports lists the bulk imports of the actor; administrators get all.
func (s *Service) BulkImports(ctx context.Context, by actor.Actor, f BulkFilter, p db.Paging) (db.Page[*BulkImport], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*BulkImport]{}, err
	}
	page, err := listBulkImports(ctx, s.DB, owner(by), f, p)
	if err != nil {
		return page, fmt.Errorf("list bulk imports: %w", err)
	}
	return page, nil
}

// owner returns the user whose imports an actor sees; nil for all.
func owner(by actor.Actor) *int64 {
	if by.Admin {
		return nil
	}
	return &by.ID
}

// BulkEntities lists the entities of a bulk import, or with 0 of all that the actor can
// see. NotFound.
func (s *Service) BulkEntities(ctx context.Context, by actor.Actor, id int64, f BulkFilter, p db.Paging) (db.Page[*Entity], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Entity]{}, err
	}
	if id != 0 {
		if _, err := s.BulkImport(ctx, by, id); err != nil {
			return db.Page[*Entity]{}, err
		}
	}
	page, err := listEntities(ctx, s.DB, owner(by), id, f, p)
	if err != nil {
		return page, fmt.Errorf("list entities of bulk import %d: %w", id, err)
	}
	return page, nil
}

// BulkProgress returns how many entities of an import have ended, and their total.
// The actor's access was checked before.
func (s *Service) BulkProgress(ctx context.Context, b *BulkImport) (over, all int, err error) {
	if over, all, err = countProgress(ctx, s.DB, b.ID); err != nil {
		return 0, 0, fmt.Errorf("progress of bulk import %d: %w", b.ID, err)
	}
	return over, all, nil
}

// BulkEntity returns an entity of a bulk import. NotFound.
func (s *Service) BulkEntity(ctx context.Context, by actor.Actor, id, entityID int64) (*Entity, error) {
	if _, err := s.BulkImport(ctx, by, id); err != nil {
		return nil, err
	}
	e, err := findEntity(ctx, s.DB, entityID)
	if err != nil {
		return nil, fmt.Errorf("find entity: %w", err)
	}
	if e == nil || e.ImportID != id {
		return nil, errs.NotFound("Entity")
	}
	return e, nil
}

// BulkEntityFailures lists the failures of an entity. NotFound.
func (s *Service) BulkEntityFailures(ctx context.Context, by actor.Actor, id, entityID int64, p db.Paging) (db.Page[*Failure], error) {
	if _, err := s.BulkEntity(ctx, by, id, entityID); err != nil {
		return db.Page[*Failure]{}, err
	}
	page, err := listFailures(ctx, s.DB, entityID, p)
	if err != nil {
		return page, fmt.Errorf("failures of entity %d: %w", entityID, err)
	}
	return page, nil
}

// BulkFailures returns the first failures of each entity by its ID, up to most for
// each. The actor's access was checked before.
func (s *Service) BulkFailures(ctx context.Context, list []*Entity, most int) (map[int64][]*Failure, error) {
	found := map[int64][]*Failure{}
	for _, e := range list {
		if e.Failures == 0 {
			continue
		}
		page, err := listFailures(ctx, s.DB, e.ID, db.Paging{Limit: most})
		if err != nil {
			return nil, fmt.Errorf("failures of entities: %w", err)
		}
		found[e.ID] = page.Items
	}
	return found, nil
}

// CancelBulkImport cancels a bulk import, for the user who started it and
// administrators. Groups and projects that are complete stay. It is one transaction:
// a request that is interrupted cancels everything or nothing. NotFound; Conflict if
// the import has ended.
func (s *Service) CancelBulkImport(ctx context.Context, by actor.Actor, id int64) (*BulkImport, error) {
	b, err := s.BulkImport(ctx, by, id)
	if err != nil {
		return nil, err
	}
	over := errs.Conflict("The import has ended.")
	if !b.Going() {
		return nil, over
	}
	var files []*Import
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "bulk_imports", id); err != nil {
			return err
		}
		files = nil // it may run twice
		now := s.Now()
		if changed, err := endBulkImport(ctx, tx, id, Canceled, now); err != nil || !changed {
			if err == nil {
				err = over
			}
			return err
		}
		// The entities go first: after that none of them gets a file.
		if err := cancelEntities(ctx, tx, id, now); err != nil {
			return err
		}
		if files, err = s.cancelFiles(ctx, tx, id, now); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, now, audit.Event{
			Type: "bulk_import_canceled", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
			Target: audit.Target{Type: "BulkImport", ID: b.ID, Details: b.SourceURL}, Details: audit.Details{Remove: "import", Message: "Import from another server canceled"},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("cancel bulk import %d: %w", id, err)
	}
	for _, i := range files {
		if ctx.Err() != nil {
			break // sweep removes the files
		}
		s.dropFile(ctx, i)
	}
	return s.BulkImport(ctx, by, id)
}

// cancelFiles cancels the imports of the files of canceled entities, and returns
// these imports.
func (s *Service) cancelFiles(ctx context.Context, tx *db.Tx, id int64, now time.Time) (files []*Import, err error) {
	list, err := findCanceled(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		i, err := findImport(ctx, tx, e.Project, *e.fileID)
		if err != nil {
			return nil, err
		}
		if i == nil || !i.Going() {
			continue
		}
		i.State, i.Error, i.FinishedAt, i.Report, i.entity = Failed, "The import was canceled.", &now, Report{}, e
		if err := s.endFailed(ctx, tx, i); err != nil {
			return nil, err
		}
		files = append(files, i)
	}
	return files, nil
}

// sealedSource is the server of a new import.
type sealedSource struct{ URL, Token string }

// sourcePlace binds a sealed source to the user who gave it.
func sourcePlace(userID int64) string { return fmt.Sprintf("bulk import source of user %d", userID) }

// SealSource checks the server of a new import and returns it sealed, for the form
// that selects what to import. Unauthorized, Invalid.
func (s *Service) SealSource(ctx context.Context, by actor.Actor, address, token string) (string, error) {
	if err := by.RequireUser(); err != nil {
		return "", err
	}
	clean, err := s.checkSource(ctx, address, token)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(sealedSource{clean, token})
	if err != nil {
		return "", err
	}
	return s.Keys.Seal(text, sourcePlace(by.ID)), nil
}

// UnsealSource opens what SealSource sealed for the actor. Invalid.
func (s *Service) UnsealSource(by actor.Actor, sealed string) (address, token string, err error) {
	text, err := s.Keys.Open(sealed, sourcePlace(by.ID))
	var from sealedSource
	if err == nil {
		err = json.Unmarshal(text, &from)
	}
	if err != nil {
		return "", "", errs.Invalid("The form has expired.").Because(err)
	}
	return from.URL, from.Token, nil
}

// OpenSource opens a sealed source, to list its groups and projects, and returns its
// URL. The caller calls done at the end. Invalid; Busy if too many sources are open.
func (s *Service) OpenSource(ctx context.Context, by actor.Actor, sealed string) (_ *remote.Client, address string, done func(), err error) {
	address, token, err := s.UnsealSource(by, sealed)
	if err != nil {
		return nil, "", nil, err
	}
	if _, err := s.checkSource(ctx, address, token); err != nil {
		return nil, "", nil, err
	}
	release, err := s.listings.Acquire(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	limits := s.Limits.OrUsual()
	limits.Body, limits.Held = min(limits.Body, maxListing), min(limits.Held, 4*maxListing)
	client, err := s.open(ctx, address, token, limits)
	if err != nil {
		release()
		return nil, "", nil, err
	}
	return client, address, func() {
		client.Close()
		release()
	}, nil
}

// maxListing is the maximum size of a page of the groups or projects of a source, in
// bytes, while a request waits for it.
const maxListing = 4 << 20

func (s *Service) open(ctx context.Context, address, token string, limits remote.Limits) (*remote.Client, error) {
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	return remote.Open(remote.Options{URL: address, Token: token, Policy: policy, Limits: limits, Now: s.Now})
}
