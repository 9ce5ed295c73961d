package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// layer holds the values that one source gives, by key.
type layer map[string]value

// value is the text of a setting and the words that open an error about it.
type value struct{ text, origin string }

// Flags adds one flag for each setting, and --config. Load reads them.
func Flags(fs *pflag.FlagSet) {
	fs.String(fileKey, "", fmt.Sprintf("%s ($%s)", fileHelp, envName(fileKey)))
	for _, s := range settings() {
		usage := fmt.Sprintf("%s ($%s)", s.help, s.env())
		if s.defNote != "" {
			usage += fmt.Sprintf(" (default: %s)", s.defNote)
		}
		// Every flag is a text for pflag, so that a bad value gets the same
		// error from us wherever it stands.
		if _, isBool := s.field.get(&Config{}).(bool); isBool {
			fs.VarPF(&switchText{s.def}, s.flag(), "", usage).NoOptDefVal = "true"
			continue
		}
		fs.String(s.flag(), s.def, usage)
	}
}

// switchText is a text that pflag shows as a flag without a value.
type switchText struct{ text string }

func (s *switchText) String() string        { return s.text }
func (s *switchText) Set(text string) error { s.text = text; return nil }
func (s *switchText) Type() string          { return "bool" }

// fromFlags returns the flags that were set, --config among them.
func fromFlags(fs *pflag.FlagSet) layer {
	l := make(layer)
	if fs == nil {
		return l
	}
	fs.Visit(func(f *pflag.Flag) {
		l[strings.ReplaceAll(f.Name, "-", "_")] = value{f.Value.String(), "config: --" + f.Name}
	})
	return l
}

// fromEnviron returns the settings among the variables and the path of the
// file. An empty variable counts as not set: container tools pass on those that
// no one gave. A variable with our prefix that we do not know is an error,
// since a mistyped setting that is quietly ignored is worse.
func fromEnviron(environ []string) (l layer, file string, faults []error) {
	known := make(map[string]string)
	keys := []string{fileKey}
	for _, s := range settings() {
		known[s.env()] = s.key
		keys = append(keys, s.key)
	}
	l = make(layer)
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		key, ok := known[name]
		switch {
		case !strings.HasPrefix(name, envPrefix) || text == "":
		case name == envName(fileKey):
			file = text
		case ok:
			l[key] = value{text, "config: " + name}
		case !foreign(name, text):
			hint := ""
			if near := nearest(strings.ToLower(strings.TrimPrefix(name, envPrefix)), keys); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", envName(near))
			}
			faults = append(faults, fmt.Errorf("config: %s is not a setting%s", name, hint))
		}
	}
	return l, file, faults
}

// testPrefix opens the names that tests and packagers may use as they like.
const testPrefix = envPrefix + "TEST_"

// Kubernetes sets variables in each container that are named after the services
// of the namespace, so a service called svc or svc-web sets such names.
var (
	serviceName = regexp.MustCompile(`^SVC_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)$`)
	serviceURL  = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// foreign reports whether a variable with our prefix is meant for others.
func foreign(name, text string) bool {
	if strings.HasPrefix(name, testPrefix) || serviceName.MatchString(name) {
		return true
	}
	// SVC_SSH_PORT=22 is a mistake; SVC_SSH_PORT=tcp://10.0.0.1:22 is Kubernetes.
	return strings.HasSuffix(name, "_PORT") && serviceURL.MatchString(text)
}

// nearest returns the known key that a mistyped one is probably meant to be, or
// nothing when none is near.
func nearest(word string, keys []string) string {
	best, least := "", min(3, (len(word)+2)/3)
	for _, key := range keys {
		if d := distance(word, key); d <= least {
			best, least = key, d-1
		}
	}
	return best
}

// distance counts the letters to insert, drop or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// EnvNames are the variables that Load reads.
func EnvNames() []string {
	names := []string{envName(fileKey)}
	for _, s := range settings() {
		names = append(names, s.env())
	}
	return names
}
