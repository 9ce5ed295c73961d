package errortrack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

const (
	// KeptEvents is the maximum number of stored events of an error: enough to
	// compare them, but few enough that an error in a loop does not fill the disk.
	// All events are counted.
	KeptEvents = 50
	// trimEvery is the number of events after which excess events are deleted. Doing
	// this for each event would be too expensive.
	trimEvery = 10
	// CountedUsers is the limit up to which the users of an error are counted.
	CountedUsers = 10_000
	// maxEnvironments is the maximum number of environments of an error. Usually
	// there are few, unless a program uses its host name as the environment.
	maxEnvironments = 100
)

// Sender is a valid client key and its project.
type Sender struct {
	KeyID     int64
	projectID int64
}

// Admit checks whether a key may send errors of a project. NotFound if the key is
// not valid, whatever the reason: the key is public, so the error must not reveal
// what exists. Unauthorized without a key.
func (s *Service) Admit(ctx context.Context, projectID int64, key string) (Sender, error) {
	if key == "" {
		return Sender{}, errs.Unauthorized("")
	}
	id, err := findSender(ctx, s.DB, s.Projects.Monitored(), projectID, secret.Digest(key))
	if err != nil {
		return Sender{}, fmt.Errorf("find client key: %w", db.NotFound(err, ""))
	}
	return Sender{id, projectID}, nil
}

// Collect stores an event of an admitted sender with the IP address ip, and
// returns the ID of the event. A repeated event is not counted again.
func (s *Service) Collect(ctx context.Context, from Sender, e *Event, ip string) (string, error) {
	if e.ID == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		e.ID = hex.EncodeToString(b[:])
	}
	if e.user == autoIP {
		e.user = "ip:" + ip
	}
	details, err := e.Details.encode()
	if err != nil {
		return "", fmt.Errorf("encode event: %w", err)
	}
	packed := pack(details)
	fingerprint := e.group()
	now := s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return save(ctx, tx, from.projectID, fingerprint, e, packed, now)
	})
	if err != nil && !errors.Is(err, errKnown) {
		return "", fmt.Errorf("collect event: %w", err)
	}
	return e.ID, nil
}

// errKnown rolls back the transaction of an event that was already counted.
var errKnown = errors.New("the event is known")

// remembered is how long event IDs are stored to detect duplicates. SDKs retry
// within minutes.
const remembered = time.Hour

// save counts and stores an event. The row of the error is written first, so that
// on PostgreSQL concurrent senders of the same error wait for each other there.
func save(ctx context.Context, tx *db.Tx, projectID int64, fingerprint string, e *Event, details []byte, now time.Time) error {
	c, err := countEvent(ctx, tx, projectID, fingerprint, e)
	if err != nil {
		return err
	}
	fresh, err := remember(ctx, tx, projectID, e.ID, now)
	if err == nil && fresh {
		fresh, err = insertEvent(ctx, tx, projectID, c.id, e, details)
	}
	if err != nil {
		return err
	}
	if !fresh {
		return errKnown
	}
	if err := countHour(ctx, tx, c.id, hourOf(e.At)); err != nil {
		return err
	}
	if err := countEnvironment(ctx, tx, projectID, c.id, e.Environment); err != nil {
		return err
	}
	if e.user != "" && c.users < CountedUsers {
		if err := countUser(ctx, tx, c.id, secret.Digest(e.user)); err != nil {
			return err
		}
	}
	if c.events > KeptEvents && c.events%trimEvery == 0 {
		return trimEvents(ctx, tx, c.id)
	}
	return nil
}

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// EncodeAll and DecodeAll are safe for concurrent use.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(8*maxDetails))
)

func pack(text []byte) []byte { return packer.EncodeAll(text, nil) }

func unpack(packed []byte) ([]byte, error) { return unpacker.DecodeAll(packed, nil) }
