package lfs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// MaxBatch is the maximum number of objects in one batch request.
const MaxBatch = 1000

// Answer is the response for one object of a batch request.
type Answer struct {
	Pointer
	// Status and Message give the reason why the object cannot be transferred; Status
	// is 0 if it can.
	Status  int
	Message string
	// Transfer reports whether the client must transfer the object. It is false for an
	// upload of an object that the project already has.
	Transfer bool
	// URL is the address from which, or to which, the client transfers the object
	// directly, with Header; empty if the transfer goes through the server.
	URL    string
	Header map[string]string
	// UploadID identifies a direct upload when it is verified.
	UploadID string
}

// Batch prepares the transfer of objects for an actor who may perform the operation in
// the project; see Project. TooLarge for more than MaxBatch objects.
func (s *Service) Batch(ctx context.Context, by actor.Actor, p *project.Project, op Operation, objects []Pointer) ([]Answer, error) {
	if len(objects) > MaxBatch {
		return nil, errs.TooLarge("A batch can have %d objects at most.", MaxBatch)
	}
	var oids []string
	for _, o := range objects {
		if ValidOID(o.OID) && o.Size >= 0 {
			oids = append(oids, o.OID)
		}
	}
	have, err := findHeld(ctx, s.DB, p.ID, oids)
	if err != nil {
		return nil, fmt.Errorf("find LFS objects of project %d: %w", p.ID, err)
	}
	direct, err := s.direct(ctx)
	if err != nil {
		return nil, err
	}
	b := &batch{Service: s, project: p, held: have, direct: direct, answers: make([]Answer, len(objects))}
	if op == Upload && direct {
		if b.begun, err = findBegun(ctx, s.DB, p.ID, oids); err != nil {
			return nil, fmt.Errorf("find LFS uploads to project %d: %w", p.ID, err)
		}
	}
	for i, o := range objects {
		a := &b.answers[i]
		a.Pointer = o
		if !ValidOID(o.OID) || o.Size < 0 {
			a.refuse(http.StatusUnprocessableEntity, "The object ID or size is invalid.")
			continue
		}
		if op == Download {
			err = b.download(ctx, a)
		} else {
			err = b.upload(ctx, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.answers, b.finish(ctx)
}

// batch is a batch request in progress.
type batch struct {
	*Service
	project *project.Project
	held    map[string]held
	direct  bool
	answers []Answer
	begun   map[string]upload // direct uploads in progress, by object ID

	limits  *limits // of uploads, read when first needed
	used    []int64 // objects whose use must be recorded
	uploads []upload
	renewed []string // keys of direct uploads that begin again
}

func (a *Answer) refuse(status int, text string) { a.Status, a.Message = status, text }

func (b *batch) download(ctx context.Context, a *Answer) error {
	h, ok := b.held[a.OID]
	if !ok {
		a.refuse(http.StatusNotFound, "Object does not exist on the server or you don't have permissions to access it")
		return nil
	}
	a.Transfer, a.Size = true, h.size
	if !b.direct {
		return nil
	}
	var err error
	a.URL, err = b.Blobs.URL(ctx, h.blob, tokenLife)
	return err
}

// touchAge is the age at which the recorded use of an object is updated.
const touchAge = time.Hour

func (b *batch) upload(ctx context.Context, a *Answer) error {
	if h, ok := b.held[a.OID]; ok {
		if h.size != a.Size {
			a.refuse(http.StatusUnprocessableEntity, "The size is not that of the object.")
		} else if b.Now().Sub(h.usedAt) > touchAge {
			b.used = append(b.used, h.id)
		}
		return nil
	}
	if b.limits == nil {
		l, err := b.limitsOf(ctx, b.project)
		if err != nil {
			return err
		}
		if b.limits = &l; b.direct && l.quota > 0 {
			begun, err := begunSize(ctx, b.DB, b.project.ID)
			if err != nil {
				return fmt.Errorf("find LFS uploads to project %d: %w", b.project.ID, err)
			}
			b.limits.occupied += begun
		}
	}
	begun, again := b.begun[a.OID]
	if again = again && begun.size == a.Size; again {
		b.limits.occupied -= a.Size // already counted
	}
	if err := b.limits.take(a.Size); err != nil {
		refused, _ := errs.As(err)
		a.refuse(http.StatusUnprocessableEntity, refused.Text)
		return nil
	}
	a.Transfer = true
	if !b.direct || a.Size > maxDirect {
		return nil
	}
	if again && b.Now().Sub(begun.createdAt) > tokenLife {
		b.renewed = append(b.renewed, begun.blob)
	}
	if !again {
		begun = upload{blob: stagingKey(secret.Token("")), projectID: b.project.ID, oid: a.OID, size: a.Size, createdAt: b.Now()}
		b.uploads = append(b.uploads, begun)
	}
	a.UploadID = uploadIDOf(begun.blob)
	var err error
	a.URL, a.Header, err = b.Blobs.UploadURL(ctx, begun.blob, a.Size, tokenLife)
	return err
}

// finish stores the uploads that the batch has started.
func (b *batch) finish(ctx context.Context) error {
	if len(b.used) == 0 && len(b.uploads) == 0 && len(b.renewed) == 0 {
		return nil
	}
	err := b.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, u := range b.uploads {
			if err := insertUpload(ctx, tx, u); err != nil {
				return err
			}
		}
		for _, key := range b.renewed {
			if err := renewUpload(ctx, tx, key, b.Now()); err != nil {
				return err
			}
		}
		return touch(ctx, tx, b.project.ID, b.used, b.Now())
	})
	if err != nil {
		return fmt.Errorf("begin LFS uploads to project %d: %w", b.project.ID, err)
	}
	return nil
}

// limits are the remaining bytes for uploads to a project.
type limits struct {
	object    int64 // of one object; 0 means no limit
	quota     int64 // of the repository with its objects; 0 means no limit
	occupied  int64
	megabytes int // of one object
}

func (s *Service) limitsOf(ctx context.Context, p *project.Project) (limits, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return limits{}, err
	}
	l := limits{object: int64(settings.MaxLFSMegabytes) << 20, quota: int64(settings.RepositoryMegabytes) << 20, megabytes: settings.MaxLFSMegabytes}
	if l.quota > 0 {
		l.occupied, err = s.occupied(ctx, p)
	}
	return l, err
}

// occupied returns the size of the repository of a project with its objects.
func (s *Service) occupied(ctx context.Context, p *project.Project) (int64, error) {
	sizes, err := s.Sizes(ctx, []int64{p.ID})
	if err != nil {
		return 0, err
	}
	repository, err := s.Projects.RepositorySize(ctx, p.ID)
	return sizes[p.ID] + repository, err
}

// Room returns how many bytes the repository of a project can grow by; 0 means no
// limit. TooLarge if it has reached its size limit. It checks no permissions.
func (s *Service) Room(ctx context.Context, p *project.Project) (int64, error) {
	l, err := s.limitsOf(ctx, p)
	if err != nil || l.quota == 0 {
		return 0, err
	}
	left := l.quota - l.occupied
	if left <= 0 {
		return 0, errs.TooLarge("The repository has reached its size limit of %d MB.", l.quota>>20)
	}
	return left, nil
}

// take counts an object, or refuses it if it exceeds a limit.
func (l *limits) take(size int64) error {
	if l.object > 0 && size > l.object {
		return errs.TooLarge("An LFS object can have %d MB at most.", l.megabytes)
	}
	if l.quota > 0 && size > l.quota-l.occupied { // a sum could overflow
		return errs.TooLarge("%s", overQuota(l.occupied+min(size, l.quota), l.quota))
	}
	l.occupied += size
	return nil
}

// overQuota returns the message for uploads that would exceed the size limit of a
// repository.
func overQuota(size, quota int64) string {
	return fmt.Sprintf("Your push has been rejected, because this repository has exceeded its size limit of %d MB by %d MB. Contact your administrator.",
		quota>>20, (size-quota+1<<20-1)>>20)
}
