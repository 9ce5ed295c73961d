package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/git/object"
)

// Stat is the number of lines that a commit changed.
type Stat struct {
	Added   int
	Removed int
}

// Stats returns the changes of each commit compared with its first parent, in the
// order of ids. Binary files are not counted. It returns ErrNotFound.
func (r Repo) Stats(ctx context.Context, ids []OID) ([]Stat, error) {
	commits, err := r.commits(ctx, ids)
	if err != nil {
		return nil, err
	}
	known := map[OID]Stat{}
	var input bytes.Buffer
	for _, c := range commits {
		if v, ok := r.engine.cache.get(cacheKey{r.scope(), kindAnswer, "stat " + string(c.ID)}); ok {
			known[c.ID] = v.(Stat)
			continue
		}
		input.WriteString(string(c.ID))
		if len(c.ParentIDs) > 0 {
			input.WriteString(" " + string(c.ParentIDs[0]))
		}
		input.WriteByte('\n')
	}
	if input.Len() > 0 {
		args := []string{"diff-tree", "--stdin", "-r", "--root", "--numstat", "--find-renames"}
		var last OID
		err = r.run(ctx, command{args: args, in: &input}, func(out io.Reader) error {
			return eachLine(out, func(line string) error {
				if id, ok := ParseOID(line); ok {
					last = id
					known[last] = Stat{}
				} else if s, ok := parseNumstat(line); ok {
					known[last] = known[last].plus(s)
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	stats := make([]Stat, len(ids))
	for i, c := range commits {
		stats[i] = known[c.ID] // zero for an empty commit, which git does not print
		r.engine.cache.put(cacheKey{r.scope(), kindAnswer, "stat " + string(c.ID)}, stats[i], 0)
	}
	return stats, nil
}

func (s Stat) plus(o Stat) Stat { return Stat{s.Added + o.Added, s.Removed + o.Removed} }

// parseNumstat parses "<added>\t<removed>\t<path>"; both numbers are "-" for a
// binary file.
func parseNumstat(line string) (Stat, bool) {
	added, rest, ok := strings.Cut(line, "\t")
	removed, _, more := strings.Cut(rest, "\t")
	if !ok || !more {
		return Stat{}, false
	}
	var s Stat
	s.Added, _ = strconv.Atoi(added)
	s.Removed, _ = strconv.Atoi(removed)
	return s, true
}

// eachLine calls do for each line. Very long lines are truncated.
func eachLine(out io.Reader, do func(string) error) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		part, err := in.ReadSlice('\n')
		line := string(bytes.TrimSuffix(part, []byte("\n")))
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil && line == "" {
			return nil
		}
		if doErr := do(line); doErr != nil {
			return doErr
		}
		if err != nil {
			return nil
		}
	}
}

// Contributor is an author, identified by email address.
type Contributor struct {
	Name    string // name in the newest commit
	Email   string
	Commits int
	Stat
	// Weeks is the number of commits by week since 1970, by author date. It must not
	// be modified.
	Weeks map[int64]int
}

// Week is the unit of Weeks.
const Week = 7 * 24 * time.Hour

// contributions are the contributors of a history.
type contributions struct {
	tip   OID
	by    map[string]Contributor // by lowercase email
	order []string               // lowercase emails, by newest commit
	// partial reports that the oldest commits were not read.
	partial bool
}

// Contributors returns the authors of a revision, without merges, by newest
// commit. If the history of an earlier call is included, only new commits are
// read. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Contributors(ctx context.Context, rev string) ([]Contributor, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	key := cacheKey{r.scope(), kindAnswer, "contributors " + string(id)}
	if v, ok := r.engine.cache.get(key); ok && !v.(*contributions).partial {
		return v.(*contributions).list(), nil
	}
	latest := cacheKey{r.scope(), kindAnswer, "contributors"}
	var before *contributions
	if v, ok := r.engine.cache.get(latest); ok && !v.(*contributions).partial {
		previous := v.(*contributions)
		isAncestor, err := r.IsAncestor(ctx, string(previous.tip), string(id))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if isAncestor {
			before = previous
		}
	}
	sum, err := r.sumContributions(ctx, id, before)
	if err != nil {
		return nil, err
	}
	r.engine.cache.put(key, sum, sum.size())
	r.engine.cache.put(latest, sum, sum.size())
	return sum.list(), nil
}

// size returns the approximate size in bytes.
func (s *contributions) size() int {
	size := 200 * len(s.by)
	for _, c := range s.by {
		size += 32 * len(c.Weeks)
	}
	return size
}

// logContributions returns the git command that lists the authors of a history.
// Headers cannot contain NUL, so an author cannot forge a line.
func logContributions(tip OID, before *contributions, more ...string) []string {
	args := append([]string{"log", "--no-merges", "--encoding=UTF-8", "--format=%x00%at%x00%an%x00%ae"}, more...)
	args = append(args, "--end-of-options", string(tip))
	if before != nil {
		args = append(args, "^"+string(before.tip))
	}
	return append(args, "--")
}

// lineArgs makes git count changed lines.
var lineArgs = []string{"--numstat", "--find-renames"}

func (r Repo) sumContributions(ctx context.Context, tip OID, before *contributions) (*contributions, error) {
	sum := &contributions{tip: tip, by: map[string]Contributor{}}
	mail := ""
	err := r.run(ctx, command{args: logContributions(tip, before, lineArgs...)}, func(out io.Reader) error {
		return eachLine(out, func(line string) error {
			mail = sum.readLine(line, mail)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("contributors: %w", err)
	}
	if before != nil {
		sum.join(before)
	}
	return sum, nil
}

// readLine parses a line of the output: a commit, or the changes to a file by the
// author of the last commit, whose email is mail. It returns the email of the
// current author.
func (s *contributions) readLine(line, mail string) string {
	if head, ok := strings.CutPrefix(line, "\x00"); ok {
		return s.read(head)
	}
	if n, ok := parseNumstat(line); ok {
		c := s.by[mail]
		c.Stat = c.Stat.plus(n)
		s.by[mail] = c
	}
	return mail
}

// read parses a commit line.
func (s *contributions) read(line string) (mail string) {
	at, who, _ := strings.Cut(line, "\x00")
	name, email, _ := strings.Cut(who, "\x00")
	return s.add(object.Decode([]byte(name), ""), object.Decode([]byte(email), ""), at)
}

// add adds a commit.
func (s *contributions) add(name, email, at string) (mail string) {
	mail = strings.ToLower(email)
	c, ok := s.by[mail]
	if !ok {
		c.Name, c.Email, c.Weeks = name, email, map[int64]int{}
		s.order = append(s.order, mail)
	}
	c.Commits++
	if seconds, err := strconv.ParseInt(at, 10, 64); err == nil && seconds > 0 {
		c.Weeks[seconds/int64(Week/time.Second)]++
	}
	s.by[mail] = c
	return mail
}

// join adds the contributions of an older part of the history.
func (s *contributions) join(older *contributions) {
	s.partial = s.partial || older.partial
	for _, mail := range older.order {
		o := older.by[mail]
		c, ok := s.by[mail]
		if !ok {
			c.Name, c.Email, c.Weeks = o.Name, o.Email, map[int64]int{}
			s.order = append(s.order, mail)
		}
		for week, n := range o.Weeks {
			c.Weeks[week] += n
		}
		c.Commits += o.Commits
		c.Stat = c.Stat.plus(o.Stat)
		s.by[mail] = c
	}
}

func (s *contributions) list() []Contributor {
	list := make([]Contributor, 0, len(s.order))
	for _, mail := range s.order {
		list = append(list, s.by[mail])
	}
	return list
}

// LastCommits returns the newest commit that changed each name in a directory.
// Names that do not exist are left out. It returns ErrBadRevision, ErrBadPath and
// ErrNotFound.
func (r Repo) LastCommits(ctx context.Context, rev, dir string, names []string) (map[string]*Commit, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if dir = strings.Trim(dir, "/"); dir != "" {
		prefix = dir + "/"
	}
	args := []string{"log", "--format=%x00%H", "--name-only", "-z", "--no-renames", "--diff-merges=combined", "--end-of-options", string(id), "--"}
	missing := map[string]bool{}
	for _, name := range names {
		if err := checkPath(prefix + name); err != nil || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("last commit of %.100q: %w", name, ErrBadPath)
		}
		missing[name] = true
		args = append(args, prefix+name)
	}
	if len(names) == 0 {
		return nil, nil
	}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	found := map[string]OID{}
	if v, ok := r.engine.cache.get(key); ok {
		found = v.(map[string]OID)
	} else {
		err = r.run(ctx, command{args: args}, func(out io.Reader) error { return lastTouched(out, prefix, missing, found) })
		if err != nil {
			return nil, err
		}
		r.engine.cache.put(key, found, len(key.id)+100*len(found))
	}
	present := slices.Sorted(maps.Keys(found))
	ids := make([]OID, len(present))
	for i, name := range present {
		ids[i] = found[name]
	}
	commits, err := r.commits(ctx, ids)
	if err != nil {
		return nil, err
	}
	last := make(map[string]*Commit, len(present))
	for i, name := range present {
		last[name] = commits[i]
	}
	return last, nil
}

// lastTouched parses "\0<id>\0\n<path>\0<path>\0" for each commit until all names
// are found.
func lastTouched(out io.Reader, prefix string, missing map[string]bool, found map[string]OID) error {
	in := bufio.NewReaderSize(out, 64<<10)
	var id OID
	for len(missing) > 0 {
		field, err := in.ReadString(0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		field = strings.TrimPrefix(field[:len(field)-1], "\n")
		if next, ok := ParseOID(field); ok && !missing[field] {
			id = next
			continue
		}
		rest, ok := strings.CutPrefix(field, prefix)
		name, _, _ := strings.Cut(rest, "/")
		if ok && missing[name] {
			found[name] = id
			delete(missing, name)
		}
	}
	return errEnough
}
