package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// RefNames returns the full names of the refs below a place, in order, without
// looking where they lead. match is asked about the name behind the place; nil
// takes all. It returns ErrNoRepository and ErrBadRef.
func (r Repo) RefNames(ctx context.Context, place string, match func(string) bool) ([]string, error) {
	names, _, err := r.refNames(ctx, RefOptions{Place: place, Match: match})
	return names, err
}

// Merged returns which of the refs are part of the history of a revision, by
// one process for all of them. Without refs it looks at all branches. It
// returns ErrBadRevision, ErrBadRef and ErrNotFound.
func (r Repo) Merged(ctx context.Context, into string, refs ...string) ([]string, error) {
	id, err := r.ResolveCommit(ctx, into)
	if err != nil {
		return nil, err
	}
	args := []string{"for-each-ref", "--format=%(refname)", "--merged=" + string(id)}
	for _, ref := range refs {
		if err := CheckRef(ref); err != nil {
			return nil, err
		}
		args = append(args, ref)
	}
	if len(refs) == 0 {
		args = append(args, Heads)
	}
	var found []string
	err = r.run(ctx, command{args: args}, func(out io.Reader) error {
		return eachLine(out, func(line string) error {
			// A name stands for what is below it as well.
			if len(refs) == 0 || slices.Contains(refs, line) {
				found = append(found, line)
			}
			return nil
		})
	})
	return found, err
}

// TagOptions is an annotated tag that is to be made.
type TagOptions struct {
	Name    string // without its place
	Target  OID
	Type    Type // of the target
	Tagger  Signature
	Message string
}

// CreateTag stores an annotated tag, which no one sees before UpdateRefs. It
// returns ErrBadRef.
func (r Repo) CreateTag(ctx context.Context, o TagOptions) (OID, error) {
	if err := CheckRef(Tags + o.Name); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	q, err := r.newQuarantine()
	if err != nil {
		return "", err
	}
	defer q.discard()
	message := strings.ReplaceAll(strings.ToValidUTF8(o.Message, "\uFFFD"), "\x00", "")
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	text := fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\n\n%s", o.Target, o.Type, o.Name, encodeSignature(o.Tagger), message)
	id, err := q.write(TypeTag, []byte(text))
	if err != nil {
		return "", err
	}
	return id, q.migrate()
}

// Digest is the SHA-256 of an object's content, in hex. It returns
// ErrNotFound.
func (r Repo) Digest(ctx context.Context, id OID) (string, error) {
	key := cacheKey{r.scope(), kindAnswer, "sha256 " + string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(string), nil
	}
	content, err := r.Open(ctx, id)
	if err != nil {
		return "", err
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{sum}, onlyReader{content}, make([]byte, 64<<10)); err != nil {
		return "", err
	}
	text := hex.EncodeToString(sum.Sum(nil))
	r.engine.cache.put(key, text, len(text))
	return text, nil
}
