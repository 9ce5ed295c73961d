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
)

// Stat counts the lines that a commit changed.
type Stat struct {
	Added   int
	Removed int
}

// Stats returns the counts of each commit against its first parent, in the
// order of ids. Binary files count nothing. It returns ErrNotFound.
func (r Repo) Stats(ctx context.Context, ids []OID) ([]Stat, error) {
	commits, err := r.commits(ctx, ids)
	if err != nil {
		return nil, err
	}
	known := map[OID]Stat{}
	var ask bytes.Buffer
	for _, c := range commits {
		if v, ok := r.engine.cache.get(cacheKey{r.scope(), kindAnswer, "stat " + string(c.ID)}); ok {
			known[c.ID] = v.(Stat)
			continue
		}
		ask.WriteString(string(c.ID))
		if len(c.ParentIDs) > 0 {
			ask.WriteString(" " + string(c.ParentIDs[0]))
		}
		ask.WriteByte('\n')
	}
	if ask.Len() > 0 {
		args := []string{"diff-tree", "--stdin", "-r", "--root", "--numstat", "--find-renames"}
		var last OID
		err = r.run(ctx, command{args: args, in: &ask}, func(out io.Reader) error {
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
		stats[i] = known[c.ID] // a commit that changes nothing is not in the answer
		r.engine.cache.put(cacheKey{r.scope(), kindAnswer, "stat " + string(c.ID)}, stats[i], 0)
	}
	return stats, nil
}

func (s Stat) plus(o Stat) Stat { return Stat{s.Added + o.Added, s.Removed + o.Removed} }

// parseNumstat reads "<added>\t<removed>\t<path>"; both are "-" for a binary
// file.
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

// eachLine reads lines of any length; of a very long one the beginning.
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

// Contributor is who wrote commits under one mail address.
type Contributor struct {
	Name    string // in the newest commit
	Email   string
	Commits int
	Stat
	// Weeks is how many commits are of each week, by the author's clock,
	// counted from 1970. It must not be changed.
	Weeks map[int64]int
}

// Week is what Weeks counts in.
const Week = 7 * 24 * time.Hour

// contributions is the sum of a history.
type contributions struct {
	tip   OID
	by    map[string]Contributor // by mail in lower case
	order []string               // the mails, the newest commit first
	// partial: the oldest commits were not read.
	partial bool
}

// Contributors sums up the history of a revision without its merges, by mail
// address, the author of the newest commit first. What a revision had before
// is not counted again when it has moved on. It returns ErrBadRevision and
// ErrNotFound.
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
		known := v.(*contributions)
		is, err := r.IsAncestor(ctx, string(known.tip), string(id))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if is {
			before = known
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

// size is about how many bytes of memory it takes.
func (s *contributions) size() int {
	size := 200 * len(s.by)
	for _, c := range s.by {
		size += 32 * len(c.Weeks)
	}
	return size
}

// logContributions are the arguments of git that give the authors of a history.
// The zero byte can be in no header, so no author can forge a line.
func logContributions(tip OID, before *contributions, more ...string) []string {
	args := append([]string{"log", "--no-merges", "--encoding=UTF-8", "--format=%x00%at%x00%an%x00%ae"}, more...)
	args = append(args, "--end-of-options", string(tip))
	if before != nil {
		args = append(args, "^"+string(before.tip))
	}
	return append(args, "--")
}

// lineArgs makes git count the lines that commits change.
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

// readLine counts what a line of git says: a commit, or lines that the last one, of
// the author with the mail address, changed in a file.
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

// read counts the commit of a line of git.
func (s *contributions) read(line string) (mail string) {
	at, who, _ := strings.Cut(line, "\x00")
	name, email, _ := strings.Cut(who, "\x00")
	return s.add(decode([]byte(name), ""), decode([]byte(email), ""), at)
}

// add counts a commit.
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

// join adds an older part of the history.
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

// LastCommits finds, for names in a directory of a revision, the newest commit
// that touched each of them or anything below. Names that are not there are
// left out. It returns ErrBadRevision, ErrBadPath and ErrNotFound.
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

// lastTouched reads "\0<id>\0\n<path>\0<path>\0" for each commit until no name
// is missing.
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
