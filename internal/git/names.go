package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// RefNames returns the full names of the refs below a place, in order, without
// looking where they lead. match is asked about the name behind the place; nil
// takes all. The result must not be changed. It returns ErrNoRepository and
// ErrBadRef.
func (r Repo) RefNames(ctx context.Context, place string, match func(string) bool) ([]string, error) {
	found, err := r.list(ctx, RefOptions{Place: place, Match: match})
	return found.Names, err
}

// Merged returns which of the commits are part of the history of a commit, which
// is part of its own. What is not known yet takes one process for all of them;
// the answer for two commits cannot change, so it is kept. Ids that are not those
// of commits are left out.
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
