package joblog

import (
	"bytes"
	"strconv"
	"time"
)

// Section is a part of a log that can be folded: the lines behind its first
// one, which is its heading.
type Section struct {
	Name      string `json:"name"`
	Start     int    `json:"start"`          // the line of its heading, from 1
	End       int    `json:"end"`            // its last line; 0 while it lasts
	Took      string `json:"took,omitempty"` // how long
	Collapsed bool   `json:"collapsed,omitempty"`

	began int64
}

// marker is where a section begins or ends, as runners write it:
//
//	section_start:1700000000:name[collapsed=true]\r\x1b[0K
type marker struct {
	end       bool
	at        int64 // Unix time
	name      string
	collapsed bool
}

const (
	startMark = "section_start:"
	endMark   = "section_end:"
	// maxSections bounds what is remembered of one log.
	maxSections = 5000
	maxName     = 200
)

// markers takes the marks of sections out of a line; without any the line
// comes back as it is.
func markers(line []byte) (rest []byte, found []marker) {
	at := bytes.Index(line, []byte("section_"))
	if at < 0 {
		return line, nil
	}
	var kept []byte
	for at >= 0 {
		m, n := readMarker(line[at:])
		if n == 0 {
			at += len("section_")
			n = bytes.Index(line[at:], []byte("section_"))
			if n < 0 {
				break
			}
			at += n
			continue
		}
		found = append(found, m)
		kept = append(kept, line[:at]...)
		line = line[at+n:]
		at = bytes.Index(line, []byte("section_"))
	}
	if found == nil {
		return line, nil
	}
	return append(kept, line...), found
}

// readMarker reads the mark with which p begins, and its length; 0 for none.
func readMarker(p []byte) (m marker, n int) {
	rest, ok := bytes.CutPrefix(p, []byte(startMark))
	if !ok {
		if rest, ok = bytes.CutPrefix(p, []byte(endMark)); !ok {
			return m, 0
		}
		m.end = true
	}
	when, rest, ok := bytes.Cut(rest, []byte(":"))
	if !ok || len(when) == 0 || len(when) > 12 {
		return m, 0
	}
	var err error
	if m.at, err = strconv.ParseInt(string(when), 10, 64); err != nil || m.at < 0 {
		return m, 0
	}
	i := 0
	for i < len(rest) && i < maxName && nameByte(rest[i]) {
		i++
	}
	if i == 0 {
		return m, 0
	}
	m.name, rest = string(rest[:i]), rest[i:]
	if len(rest) > 0 && rest[0] == '[' {
		close := bytes.IndexByte(rest[:min(len(rest), maxName)], ']')
		if close < 0 {
			return m, 0
		}
		m.collapsed = bytes.Contains(rest[:close], []byte("collapsed=true"))
		rest = rest[close+1:]
	}
	if len(rest) == 0 || rest[0] != '\r' {
		return m, 0
	}
	rest = bytes.TrimPrefix(rest[1:], []byte("\x1b[0K"))
	return m, len(p) - len(rest)
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// sections are those of a log, as far as it was read.
type sections struct {
	list []Section
	open []int // which of them last, the outer one first
	rev  int   // grows with each change
}

// note takes the marks of a line; bare says that nothing else stands on it.
func (s *sections) note(line int, found []marker, bare bool) {
	for _, m := range found {
		if m.end {
			s.close(line, m, bare)
			continue
		}
		if len(s.list) == maxSections {
			continue
		}
		s.open = append(s.open, len(s.list))
		s.list = append(s.list, Section{Name: m.name, Start: line, Collapsed: m.collapsed, began: m.at})
		s.rev++
	}
}

// close ends the section of a name, and those within it. A line that has
// something else on it belongs to what follows.
func (s *sections) close(line int, m marker, bare bool) {
	for i := len(s.open) - 1; i >= 0; i-- {
		if s.list[s.open[i]].Name != m.name {
			continue
		}
		for _, n := range s.open[i:] {
			one := &s.list[n]
			one.End = line
			if !bare {
				one.End = max(line-1, one.Start)
			}
			one.Took = took(m.at - one.began)
		}
		s.open = s.open[:i]
		s.rev++
		return
	}
}

// took says how long something lasted, as a clock does.
func took(seconds int64) string {
	if seconds < 0 {
		return ""
	}
	d := time.Duration(seconds) * time.Second
	text := strconv.FormatInt(int64(d/time.Hour), 10) + time.Unix(seconds, 0).UTC().Format(":04:05")
	if d < time.Hour {
		return text[2:]
	}
	return text
}
