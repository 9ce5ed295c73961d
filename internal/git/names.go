package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"svc/internal/git/object"
)

// RefNames returns the full names of the refs below a prefix, sorted, without
// reading their objects. match gets the name without the prefix; nil matches all.
// The result must not be modified. It returns ErrNoRepository and ErrBadRef.
func (r Repo) RefNames(ctx context.Context, prefix string, match func(string) bool) ([]string, error) {
	found, err := r.list(ctx, RefOptions{Place: prefix, Match: match})
	return found.Names, err
}

// Merged reports which commits are ancestors of a commit, or the commit itself.
// One process checks all pairs that are not cached. IDs that are not commits are
// left out.
func (r Repo) Merged(ctx context.Context, into OID, ids []OID) (map[OID]bool, error) {
	whole := r.Whole()
	commits, err := whole.readCommits(ctx, append([]OID{into}, ids...), true)
	if err != nil {
		return nil, err
	}
	if commits[0] == nil {
		return nil, fmt.Errorf("commit %s: %w", into, ErrNotFound)
	}
	merged := make(map[OID]bool, len(ids))
	var asked []Info
	for i, id := range ids {
		if commits[i+1] != nil && !merged[id] {
			merged[id] = true
			asked = append(asked, Info{OID: id, Type: TypeCommit})
		}
	}
	left, err := whole.unreachable(ctx, asked, &tips{ids: map[OID]bool{into: true}, sum: string(into)})
	if err != nil {
		return nil, err
	}
	for _, id := range left {
		delete(merged, id)
	}
	return merged, nil
}

// TagOptions describes a new annotated tag.
type TagOptions struct {
	Name    string // without refs/tags/
	Target  OID
	Type    Type // type of the target
	Tagger  Signature
	Message string
}

// CreateTag writes an annotated tag object. It is not reachable before UpdateRefs.
// It returns ErrBadRef.
func (r Repo) CreateTag(ctx context.Context, o TagOptions) (id OID, err error) {
	if err := CheckRef(Tags + o.Name); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	q, err := r.newQuarantine(ctx)
	if err != nil {
		return "", err
	}
	defer q.discard()
	defer q.cause(ctx, &err)
	message := strings.ReplaceAll(strings.ToValidUTF8(o.Message, "\uFFFD"), "\x00", "")
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	text := fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\n\n%s", o.Target, o.Type, o.Name, object.EncodeSignature(o.Tagger), message)
	if id, err = q.write(TypeTag, []byte(text)); err != nil {
		return "", err
	}
	return id, q.migrate()
}

// Digest returns the SHA-256 of the content of an object in hex. It returns
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
