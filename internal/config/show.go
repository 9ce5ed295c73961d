package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Shown is a setting for display: its value without secrets, and the source of the
// value.
type Shown struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"` // such as --addr, SVC_ADDR, /etc/svc/config.yml:3 or default
}

// Show returns all settings with their values and sources, in the order of the
// table. It returns the errors of Load.
func Show(fs *pflag.FlagSet, environ []string) ([]Shown, error) {
	c, sources, err := loadSources(fs, environ)
	if err != nil {
		return nil, err
	}
	var shown []Shown
	for _, s := range settings() {
		one := Shown{Key: s.key, Value: text(s.field.get(&c)), Source: "default"}
		for _, l := range sources {
			if v, ok := l[s.key]; ok {
				one.Source = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(v.origin, "config: "), "config file "), ": "+s.key)
			}
		}
		shown = append(shown, one)
	}
	return shown, nil
}

// text returns a value in the form of an environment variable.
func text(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ",")
	case []netip.Prefix:
		var parts []string
		for _, p := range v {
			parts = append(parts, p.String())
		}
		return strings.Join(parts, ",")
	case map[string]string:
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, key+"="+v[key])
		}
		return strings.Join(pairs, ",")
	}
	return fmt.Sprint(v)
}

// Sample returns a configuration file with a description of every key. The keys in
// set have these values; all others are commented out and have their defaults.
func Sample(set map[string]string) string {
	var b strings.Builder
	b.WriteString(sampleHead)
	for _, s := range settings() {
		b.WriteString("\n")
		for _, line := range wrap(strings.ReplaceAll(s.help, "`", ""), 78) {
			b.WriteString("# " + line + "\n")
		}
		if s.defNote != "" {
			fmt.Fprintf(&b, "# Default: %s\n", s.defNote)
		}
		if value, ok := set[s.key]; ok {
			fmt.Fprintf(&b, "%s: %s\n", s.key, value)
			continue
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("#%s: %s", s.key, s.def), " ") + "\n")
	}
	return b.String()
}

const sampleHead = `# The configuration of svc. "svc config check --config FILE" checks it and
# "svc config show --config FILE" prints what applies. An environment variable
# (SVC_ADDR for addr) and a flag (--addr) take precedence.
`

// wrap breaks a text at spaces into lines of at most width bytes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
