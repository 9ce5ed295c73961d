package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/git/refstore"
)

// OID is the id of an object, in lower-case hex.
type OID = refstore.OID

// ZeroOID stands for no object: the old value of a ref that is made, the new
// one of a ref that goes.
const ZeroOID = refstore.ZeroOID

// EmptyTree is the tree without entries; git knows it without storing it.
const EmptyTree OID = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// ParseOID reads a full object id.
func ParseOID(s string) (OID, bool) { return refstore.ParseOID(s) }

// Type is the type of an object.
type Type string

// The types of objects. An entry of a tree that is a submodule is a commit.
const (
	TypeCommit Type = "commit"
	TypeTree   Type = "tree"
	TypeBlob   Type = "blob"
	TypeTag    Type = "tag"
)

// Info is what is known of an object without its content.
type Info struct {
	OID  OID
	Type Type
	Size int64
}

// Object is an object with its content, which must not be changed: others
// read it too.
type Object struct {
	Info
	Content []byte
}

const (
	// MaxObject is the size up to which Object gives a blob.
	MaxObject = 1 << 20
	// maxParsed is the size up to which trees, commits and tags are read.
	maxParsed = 32 << 20
)

// Info returns type and size of an object. It returns ErrNotFound.
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

// Object reads an object whole. It returns ErrNotFound, and ErrTooLarge for a
// blob over MaxObject, which Open reads.
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

// Content is an object that is read as a stream. Close ends it.
type Content struct {
	Info
	io.ReadCloser
}

// WriteTo implements io.WriterTo: what is held in memory already is written
// from there.
func (c *Content) WriteTo(w io.Writer) (int64, error) {
	if held, ok := c.ReadCloser.(io.WriterTo); ok {
		return held.WriteTo(w)
	}
	return io.CopyBuffer(w, onlyReader{c.ReadCloser}, make([]byte, 64<<10))
}

// Open returns an object of any size as a stream, which ends with ctx. Of a
// large object nothing is held in memory. It returns ErrNotFound.
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
	// A large object gets its own process: a client that reads slowly must not keep
	// a reader from the others.
	c := command{work: transfer, args: []string{"cat-file", string(info.Type), string(id)}}
	return &Content{info, r.stream(ctx, c)}, nil
}

// stream runs a command whose output is read from what it returns. An error
// of the process is the error of Read.
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

// onlyWriter hides all but Write, so that a copy uses the buffer it is given.
type onlyWriter struct{ io.Writer }

type streamReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (s streamReader) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}
