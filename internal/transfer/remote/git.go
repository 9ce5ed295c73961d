package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"svc/internal/git"
	"svc/internal/gitremote"
)

// mergeRefs is the prefix of the refs of merge requests.
const mergeRefs = "refs/merge-requests/"

// Git opens a repository of the source: path is that of a project, without .git. The
// URL that the source names for it is not used, because the token is sent to it.
func (c *Client) Git(path string) (*gitremote.Remote, error) {
	a := gitremote.Address{URL: c.base.JoinPath(path + ".git").String(), User: "oauth2", Password: c.o.Token}
	return gitremote.Open(a, gitremote.Options{Policy: c.o.Policy, Stall: c.limits.Stall, Also: mergeRefs})
}

// bundle writes a repository as a git bundle, and returns its default branch. ok is
// false if it has no branches. If odd is set, the repository is that of a project: refs of
// merge requests are included, and odd is called with each branch or tag that is left out
// because no project may have its name.
func (c *Client) bundle(ctx context.Context, path string, w io.Writer, odd func(ref string)) (head string, ok bool, err error) {
	r, err := c.Git(path)
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	refs, err := r.Refs(ctx)
	if err != nil {
		return "", false, gitFailure(err)
	}
	for _, ref := range refs.List {
		branch, isBranch := strings.CutPrefix(ref.Name, git.Heads)
		if odd != nil && isOdd(ref.Name) {
			odd(ref.Name)
			continue
		}
		if isBranch && (head == "" || ref.Name == refs.Head) {
			head = branch
		}
	}
	if head == "" { // nothing could be shown
		return "", false, nil
	}
	ok, err = r.Bundle(ctx, refs, w, func(ref string) bool {
		if git.CheckRef(ref) != nil || odd != nil && isOdd(ref) {
			return false
		}
		rest, isMerge := strings.CutPrefix(ref, mergeRefs)
		return !isMerge || odd != nil && isHead(rest)
	})
	return head, ok, gitFailure(err)
}

// isOdd reports whether git takes the short name of a branch or tag for something else.
func isOdd(ref string) bool {
	name, ok := strings.CutPrefix(ref, git.Heads)
	if !ok {
		name, ok = strings.CutPrefix(ref, git.Tags)
	}
	return ok && (git.Ambiguous(name) || git.LikeID(name))
}

// isHead reports whether the rest of a ref is that of the head of a merge request.
func isHead(rest string) bool {
	number, name, _ := strings.Cut(rest, "/")
	iid, err := strconv.ParseInt(number, 10, 64)
	return err == nil && iid > 0 && strconv.FormatInt(iid, 10) == number && name == "head"
}

func gitFailure(err error) error {
	var f *gitremote.Failure
	if errors.As(err, &f) {
		return &Failure{Text: f.Text, Temporary: f.Temporary, cause: err}
	}
	return err
}

// splitFullPath returns the segments of a full path, or false for one that no group or
// project has.
func splitFullPath(path string) ([]string, bool) {
	parts := strings.Split(path, "/")
	if len(path) > 1000 || len(parts) > 25 {
		return nil, false
	}
	return parts, !slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || p == "." || p == ".." || strings.HasPrefix(p, "-") || strings.ContainsFunc(p, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
		})
	})
}

// CheckPath reports whether a full path is that of a group or project.
func CheckPath(path string) bool {
	_, ok := splitFullPath(path)
	return ok
}

func number(n int64) string { return fmt.Sprint(n) }
