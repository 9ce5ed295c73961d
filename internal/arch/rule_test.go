package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// doors translate a protocol. They do not import each other.
func doors() []string { return []string{"api", "web", "githttp", "sshd", "sites"} }

// features hold the rules. A feature imports only those that stand before it.
func features() []string {
	return []string{
		"actor", // who asks: every operation of every feature takes one
		// Every change is recorded in the transaction that makes it, so each
		// feature that changes something imports audit, user too; audit knows
		// its actors by id and name only.
		"audit",
		"setting", // read by the rules of all that follow
		"user",
		"project",
		"activity",
		"notify",
		"repo",
		"plan",
		"snippet",
		"wiki",
		"merge",
		"ci",
		"pages",
		"alert",
		"errortrack",
		"oauth",
		"transfer",
		// Looks at all that the others keep, and none of them at it.
		"instance",
	}
}

// platform knows no feature.
func platform() []string {
	return []string{"bind", "db", "git", "blob", "picture", "queue", "notice", "backup", "mail", "secret", "signing", "limit", "outbound", "markup", "errs", "expand", "waittest"}
}

// pure packages do nothing but compute. Clients may import them too.
func pure() []string { return []string{"expand"} }

// clients speak to a server over the network, be it the one that they are a
// part of. They import nothing of the house.
func clients() []string { return []string{"runner"} }

// wiring knows every package: the server, its command line, and the server
// for tests.
func wiring() []string { return []string{"app", "cli", "apptest"} }

type band int

const (
	unknown  band = iota
	outside       // bench/ and test/: they look at the house from the street
	command       // cmd/
	wired         // wiring
	settings      // internal/config
	door
	feature
	base   // platform
	client // clients
	rules  // this package
)

// place is where a package stands. A subpackage stands where its parent does.
type place struct {
	band   band
	unit   string // "ci" for internal/ci and internal/ci/config
	order  int    // among the features
	helper bool   // a package for tests: dbtest, blobtest, apptest
}

// locate finds the place of a package by its path below the module.
func locate(pkg string) place {
	first, rest, _ := strings.Cut(pkg, "/")
	switch first {
	case "bench", "test":
		return place{band: outside, unit: first}
	case "cmd":
		return place{band: command, unit: rest}
	case "internal":
	default:
		return place{}
	}
	unit, _, _ := strings.Cut(rest, "/")
	p := place{unit: unit, helper: strings.HasSuffix(path.Base(pkg), "test")}
	switch {
	case slices.Contains(wiring(), unit):
		p.band = wired
	case unit == "config":
		p.band = settings
	case slices.Contains(doors(), unit):
		p.band = door
	case slices.Contains(features(), unit):
		p.band, p.order = feature, slices.Index(features(), unit)
	case slices.Contains(platform(), unit):
		p.band = base
	case slices.Contains(clients(), unit):
		p.band = client
	case unit == "arch":
		p.band = rules
	}
	return p
}

// breaches gives a sentence for each import that pkg may not have. Paths are
// those below the module. Tests are held to the rule as well, but may use the
// helpers.
func breaches(pkg string, imports, testImports []string) []string {
	if locate(pkg).band == unknown {
		return []string{fmt.Sprintf("%s is in no band: add it to doors, features, platform or clients in internal/arch/rule_test.go, "+
			"and to the picture in docs/dev/architecture.md", pkg)}
	}
	var found []string
	for _, to := range imports {
		if why := refusal(locate(pkg), locate(to), false); why != "" {
			found = append(found, fmt.Sprintf("%s imports %s: %s", pkg, to, why))
		}
	}
	for _, to := range testImports {
		if why := refusal(locate(pkg), locate(to), true); why != "" {
			found = append(found, fmt.Sprintf("a test of %s imports %s: %s", pkg, to, why))
		}
	}
	return found
}

// refusal says why an import is not allowed; it is empty for one that is.
func refusal(from, to place, test bool) string {
	switch {
	case from.band == outside || test && to.helper:
		return ""
	case to.helper && !from.helper:
		return "it is a package for tests only"
	case from.unit == to.unit && from.band == to.band || from.band == wired:
		return ""
	}
	switch to.band {
	case unknown: // reported where it stands
		return ""
	case outside:
		return "nothing imports bench/ and test/"
	case wired:
		if from.band != command {
			return "only cmd imports app"
		}
	case settings:
		if from.band != command {
			return "only app and cmd import config; pass the value on"
		}
	case door:
		if from.band == door {
			return "doors do not import each other"
		}
		return "only app imports doors"
	case feature:
		switch {
		case from.band == feature && to.order > from.order:
			return to.unit + " stands after " + from.unit + " in the list of features; write an event and let it be worked off the queue"
		case from.band != feature && from.band != door:
			return "only doors, features and app import features"
		}
	case base:
		shared := from.band == client && slices.Contains(pure(), to.unit)
		if from.band != feature && from.band != door && from.band != base && !shared {
			return "only doors, features, platform and app import platform"
		}
	case client:
		return "only app imports clients"
	default:
		return "nothing imports it"
	}
	return ""
}

func TestRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pkg         string
		imports     []string
		testImports []string
		want        string // part of the only breach; empty for none
	}{
		{pkg: "internal/api", imports: []string{"internal/user", "internal/transfer", "internal/errs"}},
		{pkg: "internal/api", imports: []string{"internal/web"}, want: "internal/api imports internal/web: doors do not import each other"},
		{pkg: "internal/sites", imports: []string{"internal/githttp"}, want: "doors do not import each other"},
		{pkg: "internal/api", imports: []string{"internal/app"}, want: "only cmd imports app"},
		{pkg: "internal/api", imports: []string{"internal/config"}, want: "pass the value on"},
		{pkg: "internal/api", testImports: []string{"internal/app/apptest", "internal/blob/blobtest"}},
		{pkg: "internal/api", testImports: []string{"internal/web"}, want: "a test of internal/api imports internal/web: doors do not import each other"},

		{pkg: "internal/user", imports: []string{"internal/audit", "internal/db", "internal/secret"}},
		{pkg: "internal/audit", imports: []string{"internal/user"}, want: "user stands after audit in the list of features"},
		{pkg: "internal/repo", imports: []string{"internal/ci"}, want: "ci stands after repo in the list of features"},
		{pkg: "internal/repo", imports: []string{"internal/ci/config"}, want: "ci stands after repo in the list of features"},
		{pkg: "internal/ci", imports: []string{"internal/repo", "internal/ci/config"}},
		{pkg: "internal/ci/config", imports: []string{"internal/ci", "internal/plan"}},
		{pkg: "internal/ci", imports: []string{"internal/api"}, want: "only app imports doors"},
		{pkg: "internal/ci", imports: []string{"internal/config"}, want: "only app and cmd import config"},
		{pkg: "internal/ci", imports: []string{"internal/app"}, want: "only cmd imports app"},
		{pkg: "internal/user", testImports: []string{"internal/project"}, want: "project stands after user in the list of features"},
		{pkg: "internal/user", testImports: []string{"internal/db/dbtest"}},

		{pkg: "internal/db", imports: []string{"internal/errs"}},
		{pkg: "internal/queue", imports: []string{"internal/user"}, want: "only doors, features and app import features"},
		{pkg: "internal/git", imports: []string{"internal/githttp"}, want: "only app imports doors"},
		{pkg: "internal/blob", imports: []string{"internal/config"}, want: "only app and cmd import config"},
		{pkg: "internal/db/dbtest", imports: []string{"internal/db"}},
		{pkg: "internal/db/dbtest", imports: []string{"internal/user"}, want: "only doors, features and app import features"},
		{pkg: "internal/queue", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},
		{pkg: "internal/queue", testImports: []string{"internal/db/dbtest"}},
		{pkg: "internal/db", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},

		{pkg: "internal/runner", imports: []string{"internal/ci"}, want: "only doors, features and app import features"},
		{pkg: "internal/runner", imports: []string{"internal/errs"}, want: "only doors, features, platform and app import platform"},
		{pkg: "internal/runner", imports: []string{"internal/expand"}},
		{pkg: "internal/runner", imports: []string{"internal/api"}, want: "only app imports doors"},
		{pkg: "internal/runner", testImports: []string{"internal/app/apptest", "internal/git/gittest"}},
		{pkg: "internal/ci", imports: []string{"internal/runner"}, want: "only app imports clients"},

		{pkg: "internal/app", imports: []string{"internal/config", "internal/api", "internal/web", "internal/ci", "internal/db", "internal/runner"}},
		{pkg: "internal/app", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},
		{pkg: "internal/app/apptest", imports: []string{"internal/app", "internal/config", "internal/db/dbtest", "internal/user"}},
		{pkg: "internal/apptest", imports: []string{"internal/app", "internal/config", "internal/db/dbtest"}},
		{pkg: "internal/config", imports: []string{"internal/errs"}, want: "only doors, features, platform and app import platform"},
		{pkg: "cmd/svc", imports: []string{"internal/app", "internal/config"}},
		{pkg: "cmd/svc", imports: []string{"internal/user"}, want: "only doors, features and app import features"},
		{pkg: "cmd/svc", imports: []string{"internal/db"}, want: "import platform"},
		{pkg: "cmd/svc", imports: []string{"internal/api"}, want: "only app imports doors"},
		{pkg: "cmd/svc", imports: []string{"internal/app/apptest"}, want: "it is a package for tests only"},

		{pkg: "bench", imports: []string{"internal/app/apptest", "internal/user"}},
		{pkg: "test/script", testImports: []string{"internal/app/apptest"}},
		{pkg: "internal/api", imports: []string{"bench"}, want: "nothing imports bench/ and test/"},
		{pkg: "internal/api", imports: []string{"internal/arch"}, want: "nothing imports it"},
		{pkg: "internal/utils", want: "internal/utils is in no band: add it to"},
		{pkg: "pkg/client", want: "pkg/client is in no band"},
		{pkg: ".", want: ". is in no band"},
	}
	for _, tt := range tests {
		got := breaches(tt.pkg, tt.imports, tt.testImports)
		switch {
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s with %v %v: %v", tt.pkg, tt.imports, tt.testImports, got)
		case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
			t.Errorf("%s with %v %v: got %q, want one with %q", tt.pkg, tt.imports, tt.testImports, got, tt.want)
		}
	}
}
