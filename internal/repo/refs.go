package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/re2"
)

// RefFilter selects branches or tags, and their order.
type RefFilter struct {
	// Search is a part of the name, ignoring case. With a leading ^ or a
	// trailing $ it must be at the start or the end.
	Search string
	Regex  string // RE2
	Order  RefOrder
	Desc   bool
	// Since and Until limit the time of the commit of a branch. They require
	// ByUpdated.
	Since, Until time.Time
}

// RefOrder is the order of branches and tags.
type RefOrder string

// The orders. ByVersion compares runs of digits as numbers.
const (
	ByName    RefOrder = "name"
	ByUpdated RefOrder = "updated"
	ByVersion RefOrder = "version"
)

// match returns a function that matches names, and a function that reports afterwards whether
// the pattern took too long for all names. Invalid if the pattern is not valid.
func (f RefFilter) match() (match func(string) bool, exceeded func() bool, err error) {
	if f.Regex != "" {
		pattern, err := re2.NewMatcher(f.Regex)
		if err != nil {
			return nil, nil, errs.Invalid("regex is not a valid RE2 pattern").Because(err)
		}
		return pattern.Match, pattern.Exceeded, nil
	}
	exceeded = func() bool { return false }
	if f.Search == "" {
		return nil, exceeded, nil
	}
	text := strings.ToLower(f.Search)
	text, first := strings.CutPrefix(text, "^")
	text, last := strings.CutSuffix(text, "$")
	return func(name string) bool {
		name = strings.ToLower(name)
		switch {
		case first && last:
			return name == text
		case first:
			return strings.HasPrefix(name, text)
		case last:
			return strings.HasSuffix(name, text)
		}
		return strings.Contains(name, text)
	}, exceeded, nil
}

// pageRefs returns a page of the refs below a prefix. A keyset page starts
// after the short name in After. Unless the order is by name, that ref must
// exist: Invalid.
func pageRefs(ctx context.Context, r git.Repo, place string, f RefFilter, p db.Paging) (db.Page[git.Ref], error) {
	var page db.Page[git.Ref]
	names, err := orderedNames(ctx, r, place, f)
	if errors.Is(err, git.ErrNoRepository) {
		return db.Page[git.Ref]{Items: []git.Ref{}}, nil
	}
	if err != nil {
		return page, err
	}
	page.Total, page.Over = len(names), len(names) > db.CountLimit
	if p.Keyset {
		if names, err = namesAfter(names, place, f, p.After); err != nil {
			return page, err
		}
	} else {
		names = names[min(p.Offset, len(names)):]
	}
	if len(names) > p.Limit {
		names, page.More = names[:p.Limit], true
	}
	if page.Items, err = r.RefsNamed(ctx, names); err != nil {
		return page, passing(err)
	}
	if len(names) > 0 {
		page.Last = []any{strings.TrimPrefix(names[len(names)-1], place)}
	}
	return page, nil
}

// errRegex is the error for a pattern that takes too long for the refs of a repository.
var errRegex = errs.Invalid("regex takes too long to match so many names. Use a simpler pattern, or search.")

// orderedNames returns the full names of the refs that match the filter, in
// order.
func orderedNames(ctx context.Context, r git.Repo, place string, f RefFilter) ([]string, error) {
	match, exceeded, err := f.match()
	if err != nil {
		return nil, err
	}
	if f.Order == ByUpdated {
		order := git.OldestFirst
		if f.Desc {
			order = git.NewestFirst
		}
		refs, err := r.Refs(ctx, git.RefOptions{Place: place, Match: match, Order: order})
		if err != nil {
			return nil, passing(err)
		}
		if exceeded() {
			return nil, errRegex
		}
		if refs, err = f.between(ctx, r, refs); err != nil {
			return nil, err
		}
		names := make([]string, len(refs))
		for i, ref := range refs {
			names[i] = ref.Name
		}
		return names, nil
	}
	names, err := r.RefNames(ctx, place, match)
	if err != nil {
		return nil, passing(err)
	}
	if exceeded() {
		return nil, errRegex
	}
	if f.Order == ByVersion || f.Desc {
		names = slices.Clone(names)
	}
	if f.Order == ByVersion {
		slices.SortStableFunc(names, compareVersions)
	}
	if f.Desc {
		slices.Reverse(names)
	}
	return names, nil
}

// between removes branches outside Since and Until.
func (f RefFilter) between(ctx context.Context, r git.Repo, refs []git.Ref) ([]git.Ref, error) {
	if f.Since.IsZero() && f.Until.IsZero() {
		return refs, nil
	}
	ids := make([]git.OID, len(refs))
	for i, ref := range refs {
		ids[i] = ref.Target
	}
	commits, err := r.Commits(ctx, ids)
	if err != nil {
		return nil, passing(err)
	}
	var kept []git.Ref
	for i, ref := range refs {
		when := commits[i].Committer.When
		if !when.Before(f.Since) && (f.Until.IsZero() || when.Before(f.Until)) {
			kept = append(kept, ref)
		}
	}
	return kept, nil
}

func namesAfter(names []string, place string, f RefFilter, after []any) ([]string, error) {
	if after == nil {
		return names, nil
	}
	token := place + fmt.Sprint(after[0])
	if i := slices.Index(names, token); i >= 0 {
		return names[i+1:], nil
	}
	if f.Order != ByName {
		return nil, errs.Invalid("page_token is invalid")
	}
	// If the order is by name, the position of a deleted ref is known.
	beyond := func(name string) bool { return name > token != f.Desc }
	i := slices.IndexFunc(names, beyond)
	if i < 0 {
		return nil, nil
	}
	return names[i:], nil
}

// compareVersions compares names part by part: runs of digits as numbers, the
// rest as text.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, y := versionPart(a), versionPart(b)
		a, b = a[len(x):], b[len(y):]
		if c := comparePart(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// versionPart returns the leading run of digits or of other characters.
func versionPart(s string) string {
	for i := range len(s) {
		if isDigit(s[i]) != isDigit(s[0]) {
			return s[:i]
		}
	}
	return s
}

func comparePart(x, y string) int {
	if !isDigit(x[0]) || !isDigit(y[0]) {
		return strings.Compare(x, y)
	}
	p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	if c := cmp.Compare(len(p), len(q)); c != 0 {
		return c
	}
	if c := strings.Compare(p, q); c != 0 {
		return c
	}
	return cmp.Compare(len(x), len(y))
}
