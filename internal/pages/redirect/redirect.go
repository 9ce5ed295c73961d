// Package redirect parses the _redirects file of a site, and finds the rule that
// matches a path.
//
// A rule is a line with a path, a target and a status: 301 (the default), 302, or
// 200, which serves the target under the path. A path may have :placeholders for
// segments and end in * for the remaining segments; the target may contain the
// :placeholders, and :splat for the remaining segments. The first matching rule
// applies.
package redirect

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

const (
	// MaxSize is the maximum size of the file in bytes.
	MaxSize = 64 << 10
	// MaxRules is the maximum number of rules. Further rules are ignored.
	MaxRules = 1000
	maxParts = 25
	maxPath  = 2048
)

// Rules are the rules of a site, in the order of the file.
type Rules []Rule

// Rule is one rule.
type Rule struct {
	Status int
	host   string // host of the URLs that match; empty matches any host
	scheme string
	from   []string // segments
	slash  bool     // the path ends in a slash
	splat  bool     // the last segment is *
	to     string   // path or URL
}

// Fault is the error of a line that is not a valid rule.
type Fault struct {
	Line int
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Text) }

// Parse parses the file. Lines that are not valid rules are skipped and returned as
// faults.
func Parse(file []byte) (Rules, []Fault) {
	var rules Rules
	var faults []Fault
	if len(file) > MaxSize {
		return nil, []Fault{{0, fmt.Sprintf("the file has more than %d bytes", MaxSize)}}
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(file), "\ufeff")) {
		n++
		if at := strings.Index(line, "#"); at == 0 || at > 0 && (line[at-1] == ' ' || line[at-1] == '\t') {
			line = line[:at]
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(rules) == MaxRules {
			return rules, append(faults, Fault{n, fmt.Sprintf("only the first %d rules count", MaxRules)})
		}
		rule, fault := parse(words)
		if fault != "" {
			faults = append(faults, Fault{n, fault})
			continue
		}
		rules = append(rules, rule)
	}
	return rules, faults
}

func parse(words []string) (r Rule, fault string) {
	r.Status = 301
	switch {
	case len(words) < 2:
		return r, "a rule has an address and one to go to"
	case len(words) > 3:
		return r, "conditions, and parameters of a query, are not supported"
	case len(words) == 3:
		var err error
		r.Status, err = strconv.Atoi(words[2])
		if err != nil || r.Status != 200 && r.Status != 301 && r.Status != 302 {
			return r, "the status must be 200, 301 or 302"
		}
	}
	from := words[0]
	if !strings.HasPrefix(from, "/") {
		u, err := url.Parse(from)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return r, "the address must begin with / or http:// or https://"
		}
		r.scheme, r.host, from = u.Scheme, strings.ToLower(u.Host), u.Path
		if from == "" {
			from = "/"
		}
	}
	if r.from, r.slash, fault = segments(from); fault != "" {
		return r, fault
	}
	for i, part := range r.from {
		if strings.Contains(part, "*") {
			if part != "*" || i != len(r.from)-1 {
				return r, "* must be the last segment, alone"
			}
			r.splat = true
		}
	}
	r.to = words[1]
	return r, r.checkTarget()
}

func segments(path string) (parts []string, slash bool, fault string) {
	if len(path) > maxPath {
		return nil, false, fmt.Sprintf("an address has at most %d bytes", maxPath)
	}
	slash = strings.HasSuffix(path, "/")
	path = strings.Trim(path, "/")
	if path != "" {
		parts = strings.Split(path, "/")
	}
	if len(parts) > maxParts {
		return nil, false, fmt.Sprintf("an address has at most %d segments", maxParts)
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return nil, false, "an address has no empty segments, and neither . nor .."
		}
	}
	return parts, slash, ""
}

// checkTarget returns a fault if visitors could choose the host of the target, or if
// browsers parse the target in different ways.
func (r *Rule) checkTarget() string {
	if len(r.to) > maxPath || strings.ContainsFunc(r.to, func(c rune) bool { return c == '\\' || unicode.IsControl(c) }) {
		return "the target is no plain address"
	}
	if strings.HasPrefix(r.to, "/") {
		path, _, _ := strings.Cut(r.to, "?")
		path, _, _ = strings.Cut(path, "#")
		if strings.HasPrefix(r.to, "//") || strings.Contains("/"+path+"/", "/../") {
			return "the target is no plain address"
		}
		// "/:splat" could become "//host".
		return ""
	}
	u, err := url.Parse(r.to)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil:
		return "the target must begin with / or http:// or https://"
	case r.Status == 200:
		return "only a file of the site can be shown under another address"
	case strings.HasPrefix(strings.TrimLeft(u.Host, "."), ":"), strings.Contains(u.Hostname(), ":splat"), strings.HasSuffix(u.Host, ":"),
		strings.ContainsAny(u.Hostname(), ":*"):
		return "the host of the target cannot be a placeholder"
	}
	return ""
}

// Target is the target of a rule for a URL.
type Target struct {
	Status int
	To     string // path that starts with one slash, or URL
}

// Find returns the target for the scheme, the host and the decoded path of a URL, or
// false if no rule matches.
func (rules Rules) Find(scheme, host, path string) (Target, bool) {
	if len(rules) == 0 || len(path) > maxPath {
		return Target{}, false
	}
	host = strings.ToLower(host)
	var parts []string
	if trimmed := strings.Trim(path, "/"); trimmed != "" {
		parts = strings.Split(trimmed, "/")
	}
	for i := range rules {
		r := &rules[i]
		if r.host != "" && (r.host != host || r.scheme != scheme) {
			continue
		}
		if values, ok := r.match(parts); ok {
			to := r.fill(values)
			if strings.HasPrefix(to, "/") && strings.Trim(to, "/") == strings.Trim(path, "/") && r.host == "" {
				continue // redirects to itself
			}
			return Target{r.Status, to}, true
		}
	}
	return Target{}, false
}

// match matches the segments of a path, and returns the values of the placeholders.
// It ignores a trailing slash.
func (r *Rule) match(parts []string) (map[string]string, bool) {
	var values map[string]string
	set := func(name, value string) {
		if values == nil {
			values = map[string]string{}
		}
		values[name] = value
	}
	for i, part := range r.from {
		switch {
		case r.splat && i == len(r.from)-1:
			set("splat", strings.Join(parts[min(i, len(parts)):], "/"))
			return values, true
		case i >= len(parts):
			return nil, false
		case len(part) > 1 && part[0] == ':':
			set(part[1:], parts[i])
		case part != parts[i]:
			return nil, false
		}
	}
	return values, len(parts) == len(r.from)
}

// fill replaces the placeholders in the target. Values are escaped, so that they can
// neither change the host nor add parameters.
func (r *Rule) fill(values map[string]string) string {
	if len(values) == 0 || !strings.Contains(r.to, ":") {
		return r.to
	}
	head, rest := "", r.to
	if at := strings.Index(r.to, "://"); at >= 0 && !strings.HasPrefix(r.to, "/") {
		end := strings.IndexAny(r.to[at+3:], "/?#")
		if end < 0 {
			return r.to
		}
		head, rest = r.to[:at+3+end], r.to[at+3+end:]
	}
	var out strings.Builder
	out.WriteString(head)
	query := false // after the question mark
	for rest != "" {
		at := strings.IndexByte(rest, ':')
		if at < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:at])
		query = query || strings.Contains(rest[:at], "?")
		rest = rest[at+1:]
		end := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
		if end < 0 {
			end = len(rest)
		}
		value, known := values[rest[:end]]
		if !known {
			out.WriteString(":")
			continue
		}
		if query {
			value = url.QueryEscape(value)
		} else {
			value = escape(value)
		}
		out.WriteString(value)
		rest = rest[end:]
	}
	text := out.String()
	if head == "" { // an empty value, or one with slashes, must not name a host
		text = "/" + strings.TrimLeft(text, "/")
	}
	return text
}

// escape escapes all special characters of a path except slashes.
func escape(value string) string {
	parts := strings.Split(value, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
