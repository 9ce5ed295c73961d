package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// layer contains the values of one source, by key.
type layer map[string]value

// value is the text of a setting and the prefix of errors about it.
type value struct{ text, origin string }

// Flags adds one flag for each setting, and --config. Load reads them.
func Flags(fs *pflag.FlagSet) {
	fs.String(fileKey, "", fmt.Sprintf("%s ($%s)", fileHelp, envName(fileKey)))
	for _, s := range settings() {
		usage := fmt.Sprintf("%s ($%s)", s.help, s.env())
		if s.defNote != "" {
			usage += fmt.Sprintf(" (default: %s)", s.defNote)
		}
		// Every flag is a string for pflag, so that an invalid value gives the same
		// error as in the other sources.
		if _, isBool := s.field.get(&Config{}).(bool); isBool {
			fs.VarPF(&switchText{s.def}, s.flag(), "", usage).NoOptDefVal = "true"
			continue
		}
		fs.String(s.flag(), s.def, usage)
	}
}

// switchText is a string that pflag shows as a flag without a value.
type switchText struct{ text string }

func (s *switchText) String() string        { return s.text }
func (s *switchText) Set(text string) error { s.text = text; return nil }
func (s *switchText) Type() string          { return "bool" }

// fromFlags returns the flags that were set, including --config.
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

// fromEnviron returns the settings in the environment and the path of the
// configuration file. An empty variable is treated as unset, because container tools
// pass empty values for unset variables. An unknown variable with the prefix SVC_ is
// an error, because it is probably a misspelled setting.
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
			faults = append(faults, fmt.Errorf("config: %s is not an option%s", name, hint))
		}
	}
	return l, file, faults
}

// testPrefix is the prefix of variables that are reserved for tests and packagers.
const testPrefix = envPrefix + "TEST_"

// Kubernetes sets variables in each container that are named after the services of
// the namespace. A service named svc or svc-web gives variables with the prefix
// SVC_.
var (
	serviceName = regexp.MustCompile(`^SVC_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)$`)
	serviceURL  = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// foreign reports whether a variable with the prefix SVC_ is not meant for svc.
func foreign(name, text string) bool {
	if strings.HasPrefix(name, testPrefix) || serviceName.MatchString(name) {
		return true
	}
	// SVC_SSH_PORT=22 is a mistake; SVC_SSH_PORT=tcp://10.0.0.1:22 is Kubernetes.
	return strings.HasSuffix(name, "_PORT") && serviceURL.MatchString(text)
}

// nearest returns the known key that is most similar to a misspelled one, or "" if
// none is similar.
func nearest(word string, keys []string) string {
	best, least := "", min(3, (len(word)+2)/3)
	for _, key := range keys {
		if d := distance(word, key); d <= least {
			best, least = key, d-1
		}
	}
	return best
}

// distance returns the Levenshtein distance of two texts.
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
