package git

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// PackFor writes a pack with the objects that are reachable from want and not from have, all
// of which must exist, for another repository that has the latter.
func (r Repo) PackFor(ctx context.Context, w io.Writer, want, have []OID) error {
	var in strings.Builder
	for _, id := range want {
		in.WriteString(string(id) + "\n")
	}
	for _, id := range have {
		in.WriteString("^" + string(id) + "\n")
	}
	c := command{work: transfer, in: strings.NewReader(in.String()),
		args: []string{"pack-objects", "-q", "--revs", "--delta-base-offset", "--stdout"}}
	err := r.run(ctx, c, func(pack io.Reader) error {
		_, err := io.Copy(w, pack)
		return err
	})
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// Known returns which of some objects exist.
func (r Repo) Known(ctx context.Context, ids []OID) (map[OID]bool, error) {
	known := map[OID]bool{}
	if len(ids) == 0 {
		return known, nil
	}
	var in strings.Builder
	for _, id := range ids {
		in.WriteString(string(id) + "\n")
	}
	c := command{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, in: strings.NewReader(in.String())}
	err := r.run(ctx, c, func(out io.Reader) error {
		return eachLine(out, func(line string) error {
			if id, kind, _ := strings.Cut(line, " "); kind != "missing" {
				known[OID(id)] = true
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for objects: %w", err)
	}
	return known, nil
}
