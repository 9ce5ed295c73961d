// Package blob stores objects in a directory or in an S3 bucket, behind one
// interface.
//
// Objects are written atomically: a Put that fails or is interrupted leaves
// nothing, and a Put that succeeded survives a crash and a power failure.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"svc/internal/errs"
)

// Store is a place for objects. Every method but Close may be called by many
// goroutines at once; of several Puts of one key the last to finish wins,
// whole.
//
// Every method returns Invalid for a key that CheckKey refuses, and
// Unavailable when a remote store does not answer.
type Store interface {
	// Put stores what r gives until io.EOF and returns its size. It replaces an
	// object that was there. An error of r, or an end of ctx before all is sent,
	// leaves things as they were. It returns Invalid when the size is not the one
	// in the options, and Conflict when the key is a directory of another key (or
	// the other way round) and the store cannot hold both.
	Put(ctx context.Context, key string, r io.Reader, o Options) (int64, error)

	// Get opens an object for reading, from any place in it; ctx must last
	// until the object is closed. It returns NotFound. A Read returns
	// Precondition rather than mix the object with one that replaced it.
	Get(ctx context.Context, key string) (*Object, error)

	// GetRange opens length bytes from offset, or all to the end when length
	// is negative; there may be fewer. It costs a remote store one request
	// where Get and Seek cost two. It returns NotFound.
	GetRange(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Stat describes an object. It returns NotFound.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error

	// List returns the objects whose keys start with prefix, in the order of the
	// keys' bytes. Their ContentType is empty. It ends after an error. A disk reads
	// a directory whole, so give keys parts that spread them.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// URL returns an address from which anyone can read the object for a while,
	// without asking us. It does not look whether the object is there. It returns
	// NotAllowed when the store has no such addresses: then read the object and
	// pass it on.
	URL(ctx context.Context, key string, ttl time.Duration) (string, error)

	// UploadURL returns an address to which anyone can put an object of a size for a
	// while, and the headers to send with it. What is put there can be anything,
	// and can be replaced as long as the address is valid. It returns NotAllowed
	// when the store has no such addresses.
	UploadURL(ctx context.Context, key string, size int64, ttl time.Duration) (string, map[string]string, error)

	// Copy copies an object as Get, or Stat, described it to another key. It
	// returns NotFound, and Precondition if the object was replaced since.
	Copy(ctx context.Context, from Info, to string) error

	// Ping reports whether the store can be used.
	Ping(ctx context.Context) error

	// Close gives up what the store holds. No method is called after it.
	Close() error
}

// Options say how to store an object.
type Options struct {
	ContentType string // application/octet-stream when empty
	Size        int64  // when known, else 0: what comes is checked against it
}

// Info describes an object.
type Info struct {
	Key         string
	Size        int64
	ModTime     time.Time // in UTC
	ContentType string

	version string // of a remote store, as Get found it
}

// Object is an object opened for reading; it serves http.ServeContent.
type Object struct {
	Info
	io.ReadSeekCloser
}

// MaxTTL is the longest life of a URL.
const MaxTTL = 7 * 24 * time.Hour

const defaultType = "application/octet-stream"

// Open opens the store that an address names: the empty one is a directory
// "blobs" below dataDir, and s3://bucket?… a bucket, with these parameters:
//
//	endpoint    of a server other than AWS, http://127.0.0.1:9000
//	region      else the one of the environment, else us-east-1
//	path_style  true when the server wants the bucket in the path
//	prefix      of every key, so that one bucket can serve several uses
//	access_key, secret_key  else as the AWS environment has it
//
// Open sends nothing to a remote store; Ping finds out whether it is there.
// Errors never show the address: it may hold a secret.
func Open(ctx context.Context, address, dataDir string) (Store, error) {
	if address == "" {
		return openDisk(filepath.Join(dataDir, "blobs"))
	}
	scheme, _, _ := strings.Cut(address, ":")
	if scheme != "s3" {
		return nil, errors.New("blob store: the address must be empty or start with s3://")
	}
	c, err := parseS3(address)
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	return openS3(ctx, c)
}

// checked returns the options with defaults filled in. The content type goes
// into headers and into a fixed space on disk.
func (o Options) checked() (Options, error) {
	if o.ContentType == "" {
		o.ContentType = defaultType
	}
	if len(o.ContentType) > maxType {
		return o, errs.Invalid("content type is over %d bytes", maxType)
	}
	for _, c := range []byte(o.ContentType) {
		if c < ' ' || c > '~' {
			return o, errs.Invalid("content type has a character that is not allowed")
		}
	}
	if o.ContentType != strings.TrimSpace(o.ContentType) {
		return o, errs.Invalid("content type starts or ends with a space")
	}
	return o, nil
}

// checkSize compares what came with what was announced.
func (o Options) checkSize(n int64) error {
	if o.Size > 0 && n != o.Size {
		return errs.Invalid("the object has %d bytes, not %d as announced", n, o.Size)
	}
	return nil
}

// checkTTL keeps within what every S3 server signs.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Second || ttl > MaxTTL {
		return errs.Invalid("the life of an address is between a second and %v", MaxTTL)
	}
	return nil
}

// endsWith is r, until ctx ends: then it gives ctx's error, so that a copy
// stops at the next read.
func endsWith(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
