// Package blob stores objects in a directory or in an S3 bucket, behind one
// interface.
//
// Objects are written atomically and durably: a Put that fails or is interrupted
// changes nothing, and a Put that succeeded survives a crash and a power failure.
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

// Store stores objects by key. All methods except Close are safe for concurrent use.
// If several Puts write one key, the last to finish replaces the others.
//
// All methods return Invalid for a key that CheckKey rejects, and Unavailable if a
// remote store does not respond.
type Store interface {
	// Put stores the data of r until io.EOF and returns its size. It replaces an
	// existing object. If r returns an error, or ctx ends before all data is sent,
	// nothing changes. It returns Invalid if the size differs from the options, and
	// Conflict if the key is a directory of another key (or vice versa) and the
	// store does not support that.
	Put(ctx context.Context, key string, r io.Reader, o Options) (int64, error)

	// Get opens an object for reading and seeking. ctx must not end before the
	// object is closed. It returns NotFound if the object does not exist. Read
	// returns Precondition if the object was replaced and cannot be read any more.
	Get(ctx context.Context, key string) (*Object, error)

	// GetRange opens at most length bytes from offset, or all bytes to the end if
	// length is negative. It needs one request to a remote store, where Get with
	// Seek needs two. It returns NotFound if the object does not exist.
	GetRange(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Stat returns the description of an object, or NotFound.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete deletes an object. It is not an error if the object does not exist.
	Delete(ctx context.Context, key string) error

	// List returns the objects whose keys start with prefix, in the byte order of
	// the keys, without ContentType. It ends after an error. A store on disk reads
	// whole directories, so keys should be spread over several directories.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// URL returns a URL from which anyone can read the object directly from the
	// store until ttl is over. It does not check whether the object exists. It
	// returns NotAllowed if the store does not support URLs; then callers must read
	// the object.
	URL(ctx context.Context, key string, ttl time.Duration) (string, error)

	// UploadURL returns a URL to which anyone can upload an object of a size until
	// ttl is over, and the headers of the upload request. The content is not
	// checked, and can be replaced while the URL is valid. It returns NotAllowed if
	// the store does not support URLs.
	UploadURL(ctx context.Context, key string, size int64, ttl time.Duration) (string, map[string]string, error)

	// Copy copies an object to another key. from is the description that Get or
	// Stat returned. It returns NotFound if the object does not exist, and
	// Precondition if it was replaced since.
	Copy(ctx context.Context, from Info, to string) error

	// Ping returns an error if the store cannot be used.
	Ping(ctx context.Context) error

	// Close releases the resources of the store. No method may be called after it.
	Close() error
}

// Options are the options of Put.
type Options struct {
	ContentType string // application/octet-stream when empty
	Size        int64  // expected size, which Put checks; 0 if unknown
}

// Info describes an object.
type Info struct {
	Key         string
	Size        int64
	ModTime     time.Time // in UTC
	ContentType string

	version string // ETag of the object in a remote store
}

// Object is an object that is open for reading. It can be passed to
// http.ServeContent.
type Object struct {
	Info
	io.ReadSeekCloser
}

// MaxTTL is the maximum lifetime of a URL.
const MaxTTL = 7 * 24 * time.Hour

const defaultType = "application/octet-stream"

// Open opens the store at an address: the directory "blobs" in dataDir if the
// address is empty, and an S3 bucket for s3://bucket?… with these parameters:
//
//	endpoint    URL of a server other than AWS, http://127.0.0.1:9000
//	region      default: the region of the AWS environment, or us-east-1
//	path_style  true if the server requires the bucket in the path
//	prefix      of all keys, so that several instances can share a bucket
//	access_key, secret_key  default: the credentials of the AWS environment
//
// Open sends no requests to a remote store; use Ping to check it. Errors do not
// contain the address, because it may contain a secret.
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

// checked returns the options with defaults. It returns Invalid for a content type
// that does not fit into a header or the trailer of a file.
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

// checkSize returns Invalid if a size differs from the expected size.
func (o Options) checkSize(n int64) error {
	if o.Size > 0 && n != o.Size {
		return errs.Invalid("the object has %d bytes, not %d as announced", n, o.Size)
	}
	return nil
}

// checkTTL returns Invalid if S3 servers do not support the lifetime of a URL.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Second || ttl > MaxTTL {
		return errs.Invalid("the lifetime of a presigned URL must be between 1s and %v", MaxTTL)
	}
	return nil
}

// endsWith returns a reader of r that returns the error of ctx after ctx has ended,
// so that a copy stops at the next read.
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
