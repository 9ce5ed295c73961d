package language

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place classifies paths that are vendored, generated or documentation.
type place struct {
	dirs []string       // anywhere
	tops []string       // at the root
	name *regexp.Regexp // of the file
}

var (
	vendoredPlace = place{
		dirs: strings.Fields("node_modules bower_components vendor vendors extern external externals Extern External Externals thirdparty third_party third-party " +
			"ThirdParty Third_Party 3rdparty 3rd_party Godeps Carthage Pods testdata dist cache env .vscode .yarn MathJax admin_media"),
		tops: strings.Fields("dependencies Dependencies deps debian"),
		name: regexp.MustCompile(`^(configure|config\.(guess|sub)|aclocal\.m4|libtool\.m4|lt[a-z~]+\.m4|gradlew(\.bat)?|mvnw(\.cmd)?|erlang\.mk|waf)$` +
			`|[.-]min\.(js|css)$|\.d\.ts$` +
			`|^(jquery|bootstrap|modernizr|prototype|angular|react|d3|normalize|font-?awesome|animate|foundation|ckeditor|tiny_mce|Chart)([.-].*)?\.(js|css|less|scss)$`),
	}
	generatedPlace = place{
		dirs: []string{"__generated__"},
		name: regexp.MustCompile(`^zz_generated|\.generated\.[a-z]+$|\.pb(\.gw)?\.go$|_pb2(_grpc)?\.pyi?$|\.pb\.(cc|h)$|_pb\.(js|rb)$|_generated\.go$` +
			`|\.(js|css)\.map$|\.designer\.(cs|vb)$|\.(g|freezed)\.dart$`),
	}
	documentPlace = place{
		dirs: strings.Fields("documentation Documentation javadoc Javadoc groovydoc Groovydoc"),
		tops: strings.Fields("doc docs Doc Docs man Man examples Examples demo demos Demo Demos sample samples Sample Samples"),
		name: regexp.MustCompile(`^(CHANGE(S|LOG)?|CONTRIBUTING|COPYING|INSTALL|LICEN[CS]E|[Ll]icen[cs]e|README|[Rr]eadme)(\.|$)`),
	}
)

func (p *place) has(dirs []string, name string) bool {
	if len(dirs) > 0 && slices.Contains(p.tops, dirs[0]) {
		return true
	}
	return slices.ContainsFunc(dirs, func(d string) bool { return slices.Contains(p.dirs, d) }) || p.name.MatchString(name)
}

// said is the value of an attribute: unspecified, unset or set.
type said int8

const (
	unsaid said = iota
	no
	yes
)

// Attributes are the attributes of a file.
type Attributes struct {
	Language                                     string
	vendored, generated, documentation, detected said
}

// Excluded reports whether a file is excluded from statistics, whatever its language is: it
// is vendored, generated or documentation.
func (a Attributes) Excluded(path string) bool {
	dirs := strings.Split(path, "/")
	name := dirs[len(dirs)-1]
	dirs = dirs[:len(dirs)-1]
	return a.vendored == yes || a.generated == yes || a.documentation == yes ||
		a.vendored == unsaid && vendoredPlace.has(dirs, name) ||
		a.generated == unsaid && generatedPlace.has(dirs, name) ||
		a.documentation == unsaid && documentPlace.has(dirs, name)
}

// Counts reports whether a file is counted. language reports whether its language is.
func (a Attributes) Counts(language bool) bool {
	return a.detected == yes || a.detected == unsaid && language
}

// attributeRule is a line of a .gitattributes file.
type attributeRule struct {
	dir     string // of the file it is in, with a slash; empty at the root
	pattern *regexp.Regexp
	whole   bool // the pattern matches the path, not only the name
	apply   []func(*Attributes)
}

// Rules are the lines of all .gitattributes files of a tree that contain linguist
// attributes.
type Rules []attributeRule

// Of returns the attributes of a path. Later lines and deeper files override
// others.
func (rules Rules) Of(path string) Attributes {
	var a Attributes
	for _, rule := range rules {
		rest, ok := strings.CutPrefix(path, rule.dir)
		if !ok {
			continue
		}
		if !rule.whole {
			rest = baseName(rest)
		}
		if rule.pattern.MatchString(rest) {
			for _, f := range rule.apply {
				f(&a)
			}
		}
	}
	return a
}

// Add adds the lines of a .gitattributes file. dir is its directory with a trailing slash;
// empty at the root. Files of parent directories must be added first.
func (rules *Rules) Add(dir, content string) {
	for line := range strings.Lines(content) {
		if rule, ok := parseAttributes(dir, line); ok {
			*rules = append(*rules, rule)
		}
	}
}

// parseAttributes parses a line of gitattributes(5) if it contains linguist attributes.
func parseAttributes(dir, line string) (attributeRule, bool) {
	line = strings.TrimSpace(line)
	if !strings.Contains(line, "linguist-") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[attr]") || strings.HasPrefix(line, "!") {
		return attributeRule{}, false
	}
	pattern, rest := line, ""
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		rest = line[len(quoted):]
		if pattern, err = strconv.Unquote(quoted); err != nil {
			return attributeRule{}, false
		}
	} else if i := strings.IndexAny(line, " \t"); i >= 0 {
		pattern, rest = line[:i], line[i:]
	}
	rule := attributeRule{dir: dir, whole: strings.Contains(pattern, "/")}
	for word := range strings.FieldsSeq(rest) {
		if f := parseLinguist(word); f != nil {
			rule.apply = append(rule.apply, f)
		}
	}
	if len(rule.apply) == 0 {
		return attributeRule{}, false
	}
	var err error
	rule.pattern, err = regexp.Compile(globPattern(strings.TrimPrefix(pattern, "/")))
	return rule, err == nil
}

// parseLinguist parses "linguist-vendored", "-linguist-vendored",
// "linguist-vendored=false" or "!linguist-vendored".
func parseLinguist(word string) func(*Attributes) {
	value := yes
	name, text, hasText := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(name, "-"):
		name, value = name[1:], no
	case strings.HasPrefix(name, "!"):
		name, value = name[1:], unsaid
	case hasText && (text == "false" || text == "0"):
		value = no
	}
	switch name {
	case "linguist-language":
		if value != yes {
			text = ""
		}
		return func(a *Attributes) { a.Language = text }
	case "linguist-vendored":
		return func(a *Attributes) { a.vendored = value }
	case "linguist-generated":
		return func(a *Attributes) { a.generated = value }
	case "linguist-documentation":
		return func(a *Attributes) { a.documentation = value }
	case "linguist-detectable":
		return func(a *Attributes) { a.detected = value }
	}
	return nil
}

// globPattern converts a pattern of gitignore(5) to a regular expression.
func globPattern(glob string) string {
	var b strings.Builder
	b.WriteString("(?s)^")
	for i := 0; i < len(glob); i++ {
		rest := glob[i:]
		switch {
		case rest == "**":
			b.WriteString(".*")
			i++
		case rest == "/**":
			b.WriteString("/.+")
			i += 2
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case glob[i] == '*':
			b.WriteString("[^/]*")
		case glob[i] == '?':
			b.WriteString("[^/]")
		case glob[i] == '[' && strings.IndexByte(rest, ']') > 1:
			end := strings.IndexByte(rest, ']')
			set := strings.ReplaceAll(rest[1:end], `\`, `\\`)
			if set[0] == '!' {
				set = "^" + set[1:]
			}
			b.WriteString("[" + set + "]")
			i += end
		case glob[i] == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	return b.String() + "$"
}
