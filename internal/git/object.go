package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/git/object"
	"svc/internal/git/refstore"
)

// OID is an object ID in lowercase hex.
type OID = refstore.OID

// ZeroOID means no object: the old value of a ref to create, or the new value of a
// ref to delete.
const ZeroOID = refstore.ZeroOID

// EmptyTree is the ID of the empty tree. Git knows it even if it is not stored.
const EmptyTree OID = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// ParseOID parses a full object ID.
func ParseOID(s string) (OID, bool) { return refstore.ParseOID(s) }

// The formats of objects; package object parses them.
type (
	// Type is an object type.
	Type = object.Type
	// Entry is an entry of a tree.
	Entry = object.Entry
	// Commit is a commit. Its texts are converted to valid UTF-8.
	Commit = object.Commit
	// Tag is an annotated tag. Its texts are converted to valid UTF-8.
	Tag = object.Tag
	// Signature is an author, committer or tagger with a time in their time zone.
	Signature = object.Signature
)

// The object types. A submodule is a tree entry of type commit.
const (
	TypeCommit = object.TypeCommit
	TypeTree   = object.TypeTree
	TypeBlob   = object.TypeBlob
	TypeTag    = object.TypeTag
)

// Info describes an object without its content.
type Info struct {
	OID  OID
	Type Type
	Size int64
}

// Object is an object with its content. The content is shared and must not be
// modified.
type Object struct {
	Info
	Content []byte
}

const (
	// MaxObject is the size of the largest blob that Object returns.
	MaxObject = 1 << 20
	// maxParsed is the size of the largest tree, commit or tag that is read.
	maxParsed = 32 << 20
)

// Info returns the type and size of an object. It returns ErrNotFound.
func (r Repo) Info(ctx context.Context, id OID) (Info, error) {
	key := cacheKey{r.scope(), kindInfo, string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(Info), nil
	}
	var info Info
	err := r.withReader(ctx, func(p *reader) (err error) {
		info, err = p.info(string(id))
		return err
	})
	if err == nil {
		r.engine.cache.put(key, info, 0)
	}
	return info, err
}

// Object returns an object. It returns ErrNotFound, and ErrTooLarge for a blob of
// more than MaxObject bytes; use Open for those.
func (r Repo) Object(ctx context.Context, id OID) (*Object, error) {
	key := cacheKey{r.scope(), kindContent, string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(*Object), nil
	}
	var o *Object
	err := r.withReader(ctx, func(p *reader) (err error) {
		var info Info
		if v, ok := r.engine.cache.get(cacheKey{r.scope(), kindInfo, string(id)}); ok {
			info = v.(Info)
		} else if info, err = p.info(string(id)); err != nil {
			return err
		}
		if info.Size > maxParsed || info.Type == TypeBlob && info.Size > MaxObject {
			return fmt.Errorf("%s %s of %d bytes: %w", info.Type, id, info.Size, ErrTooLarge)
		}
		o, err = p.contents(info)
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.Size <= r.engine.limits.CacheBlob {
		r.engine.cache.put(key, o, int(o.Size))
	}
	return o, nil
}

// Content is a stream of the content of an object. It must be closed.
type Content struct {
	Info
	io.ReadCloser
}

// WriteTo implements io.WriterTo. Content that is in memory is written without
// copying.
func (c *Content) WriteTo(w io.Writer) (int64, error) {
	if held, ok := c.ReadCloser.(io.WriterTo); ok {
		return held.WriteTo(w)
	}
	return io.CopyBuffer(w, onlyReader{c.ReadCloser}, make([]byte, 64<<10))
}

// Open returns a stream of an object of any size, which ends with ctx. Large
// objects are not held in memory. It returns ErrNotFound.
func (r Repo) Open(ctx context.Context, id OID) (*Content, error) {
	info, err := r.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	if info.Size <= MaxObject {
		o, err := r.Object(ctx, id)
		if err != nil {
			return nil, err
		}
		return &Content{o.Info, io.NopCloser(bytes.NewReader(o.Content))}, nil
	}
	// A large object gets its own process, so that a slow client does not block a
	// shared reader.
	c := command{work: transfer, args: []string{"cat-file", string(info.Type), string(id)}}
	return &Content{info, r.stream(ctx, c)}, nil
}

// stream runs a command and returns its output as a stream. Read returns errors of
// the process.
func (r Repo) stream(ctx context.Context, c command) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	out, in := io.Pipe()
	go func() {
		defer cancel()
		err := r.engine.spool.Serve(ctx, r.scope(), "", in, func(ctx context.Context, w io.Writer) error {
			return r.run(ctx, c, func(p io.Reader) error {
				_, err := io.CopyBuffer(onlyWriter{w}, p, make([]byte, 64<<10))
				if errors.Is(err, io.ErrClosedPipe) {
					return errEnough // the reader was closed
				}
				return err
			})
		})
		in.CloseWithError(err)
	}()
	return streamReader{out, cancel}
}

// onlyWriter hides all methods but Write, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

type streamReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (s streamReader) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}
