package runner

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/glob"
)

// selection selects files of the working tree.
type selection struct {
	paths     []string
	exclude   []string
	untracked bool
}

// collect returns the files of a selection: slash-separated paths relative to the
// working tree, sorted. Files outside of the tree are never included, not even
// through links. Patterns without matches are logged.
func (j *job) collect(sel selection) ([]string, error) {
	root, err := os.OpenRoot(j.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c := &collector{root: root, found: map[string]bool{}}
	for _, pattern := range cleaned(j.dir, sel.exclude) {
		g, _ := glob.Parse(pattern) // an invalid one matches nothing
		c.exclude = append(c.exclude, g)
	}
	for _, given := range sel.paths {
		pattern, ok := clean(j.dir, given)
		if !ok {
			j.warn("%s: is not within the working tree", given)
			continue
		}
		before := len(c.found)
		if err := c.add(pattern); err != nil {
			return nil, err
		}
		if n := len(c.found) - before; n > 0 {
			j.say("%s: found %d matching files and directories", given, n)
		} else {
			j.warn("%s: no matching files. Is the path relative to the working tree?", given)
		}
	}
	if sel.untracked {
		before := len(c.found)
		if err := j.addUntracked(c); err != nil {
			return nil, err
		}
		j.say("untracked: found %d files", len(c.found)-before)
	}
	list := make([]string, 0, len(c.found))
	for name := range c.found {
		list = append(list, name)
	}
	slices.Sort(list)
	return list, nil
}

// clean converts a path or pattern to one relative to the working tree. It returns
// false if it leads outside.
func clean(dir, given string) (string, bool) {
	p := filepath.ToSlash(given)
	if path.IsAbs(p) {
		below, ok := strings.CutPrefix(p+"/", filepath.ToSlash(dir)+"/")
		if !ok {
			return "", false
		}
		p = below
	}
	p = path.Clean(p)
	return p, p != ".." && !strings.HasPrefix(p, "../") && !path.IsAbs(p) && given != ""
}

func cleaned(dir string, list []string) []string {
	var out []string
	for _, given := range list {
		if p, ok := clean(dir, given); ok {
			out = append(out, p)
		}
	}
	return out
}

type collector struct {
	root    *os.Root
	exclude []glob.Glob
	found   map[string]bool
}

// add adds the files that match a pattern, and all files in matching directories.
func (c *collector) add(pattern string) error {
	start := fixed(pattern)
	if start == pattern {
		return c.walk(pattern, true, func(string) bool { return true }, pattern)
	}
	if start == "" {
		start = "."
	}
	g, _ := glob.Parse(pattern) // an invalid one matches nothing
	return c.walk(start, false, g.Match, pattern)
}

// walk walks a directory. If an entry matches, everything below it is included.
// The .git directory is left out unless it is named explicitly, because it
// contains the job token.
func (c *collector) walk(start string, all bool, fits func(string) bool, pattern string) error {
	if _, err := c.root.Lstat(start); err != nil {
		return nil // the pattern matches nothing
	}
	taken := "" // the matching directory, of which all files are added
	return fs.WalkDir(c.root.FS(), start, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // deleted in the meantime, or not readable
		}
		if d.IsDir() && path.Base(name) == ".git" && path.Base(fixed(pattern)) != ".git" && !strings.Contains("/"+pattern+"/", "/.git/") {
			return fs.SkipDir
		}
		within := all || taken != "" && strings.HasPrefix(name, taken+"/")
		if !within && !fits(name) {
			return nil
		}
		if !within && d.IsDir() {
			taken = name
		}
		c.take(name, d.Type())
		return nil
	})
}

// take adds a file, unless it is excluded or its type cannot be stored.
func (c *collector) take(name string, kind fs.FileMode) {
	if name == "." || kind&^(fs.ModeDir|fs.ModeSymlink) != 0 {
		return
	}
	if slices.ContainsFunc(c.exclude, func(g glob.Glob) bool { return g.Match(name) }) {
		return
	}
	c.found[name] = true
}

// addUntracked adds the untracked files. Git runs like a program of the job, because
// the job may have changed the Git configuration.
func (j *job) addUntracked(c *collector) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return fmt.Errorf("list untracked files: %w", err)
	}
	var list bytes.Buffer
	p := program{
		path: git, args: []string{"-c", "core.fsmonitor=false", "ls-files", "--others", "-z"}, dir: j.dir, env: j.base, out: &list, mark: j.mark, kill: j.r.Pace.Kill,
		quiet: true,
	}
	if err := p.run(j.whole); err != nil {
		return fmt.Errorf("list untracked files: %w", err)
	}
	for _, name := range bytes.Split(list.Bytes(), []byte{0}) {
		if len(name) == 0 {
			continue
		}
		p, ok := clean(j.dir, string(name))
		if !ok {
			continue
		}
		if info, err := c.root.Lstat(p); err == nil {
			c.take(p, info.Mode().Type())
		}
	}
	return nil
}
