package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// interfaces lists the packages that translate a protocol. They do not import
// each other.
func interfaces() []string { return []string{"api", "web", "githttp", "sshd", "sites"} }

// features lists the packages that contain the rules of the application. A feature
// imports only features before it in the list.
func features() []string {
	return []string{
		"actor", // the caller, an argument of every operation
		// Every change is recorded in its transaction, so each feature that
		// changes something imports audit, including user. audit stores actors
		// by ID and name.
		"audit",
		"broadcast",
		"setting", // read by the rules of all features below
		"user",
		"project",
		"upload",
		"badge",
		"activity",
		"invite",
		"notify",
		"repo",
		"plan",
		"comment",
		"board",
		"snippet",
		"wiki",
		"release",
		"merge",
		"codesearch",
		"search",
		"lfs",
		"ci",
		"catalog",
		"alert",
		"packages",
		"todo",
		"terraform",
		"securefile",
		"featureflag",
		"pages",
		"errortrack",
		"oauth",
		"signin",
		"transfer",
		"mirror",
		"hook", // subscribes to the events of the features above
		// Reads the data of all other features; none imports it.
		"instance",
	}
}

// platform lists the packages that import no feature.
func platform() []string {
	return []string{"bind", "openapi", "db", "durable", "event", "filetemplate", "git", "blob", "codeowners", "picture", "queue", "notice", "backup", "mail", "secret", "signing", "limit", "re2", "outbound", "gitremote", "imageproxy", "markup", "pgp", "emoji", "errs", "expand", "glob", "httpreq", "lru", "memo", "patch", "semver", "waittest"}
}

// pure lists the packages without configuration, database or service. Clients may
// import them, too.
func pure() []string { return []string{"durable", "expand", "glob", "lru", "patch", "re2", "semver"} }

// clients lists the packages that talk to a server over the network, even to the
// server that they are a part of. They import no other package of the module except
// pure ones.
func clients() []string { return []string{"runner"} }

// wiring lists the packages that may import all others: the server, its command
// line, and the server for tests.
func wiring() []string { return []string{"app", "cli", "apptest"} }

type band int

const (
	unknown    band = iota
	outside         // bench/, scripts/ and test/
	command         // cmd/
	wired           // wiring
	settings        // internal/config
	translator      // interfaces
	feature
	base   // platform
	client // clients
	rules  // this package
)

// place is the layer of a package. A subpackage has the layer of its parent.
type place struct {
	band   band
	unit   string // "ci" for internal/ci and internal/ci/config
	order  int    // position in features
	helper bool   // a package for tests: dbtest, blobtest, apptest
}

// locate returns the place of a package from its path below the module.
func locate(pkg string) place {
	first, rest, _ := strings.Cut(pkg, "/")
	switch first {
	case "bench", "scripts", "test":
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
	case slices.Contains(interfaces(), unit):
		p.band = translator
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

// breaches returns a sentence for each forbidden import of pkg. Paths are relative
// to the module. Tests follow the same rules, but may import helpers.
func breaches(pkg string, imports, testImports []string) []string {
	if locate(pkg).band == unknown {
		return []string{fmt.Sprintf("%s is in no layer: add it to interfaces, features, platform or clients in internal/arch/rule_test.go", pkg)}
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

// refusal returns the reason why an import is not allowed, or an empty string.
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
	case unknown: // reported for the package itself
		return ""
	case outside:
		return "nothing imports bench/, scripts/ and test/"
	case wired:
		if from.band != command {
			return "only cmd imports app"
		}
	case settings:
		if from.band != command {
			return "only app and cmd import config; pass the value on"
		}
	case translator:
		if from.band == translator {
			return "interfaces do not import each other"
		}
		return "only app imports interfaces"
	case feature:
		switch {
		case from.band == feature && to.order > from.order:
			return to.unit + " comes after " + from.unit + " in the list of features; add a background job or a callback"
		case from.band != feature && from.band != translator:
			return "only interfaces, features and app import features"
		}
	case base:
		shared := from.band == client && slices.Contains(pure(), to.unit)
		if from.band != feature && from.band != translator && from.band != base && !shared {
			return "only interfaces, features, platform and app import platform"
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
		want        string // a part of the only breach; empty for none
	}{
		{pkg: "internal/api", imports: []string{"internal/user", "internal/transfer", "internal/errs"}},
		{pkg: "internal/api", imports: []string{"internal/web"}, want: "internal/api imports internal/web: interfaces do not import each other"},
		{pkg: "internal/sites", imports: []string{"internal/githttp"}, want: "interfaces do not import each other"},
		{pkg: "internal/api", imports: []string{"internal/app"}, want: "only cmd imports app"},
		{pkg: "internal/api", imports: []string{"internal/config"}, want: "pass the value on"},
		{pkg: "internal/api", testImports: []string{"internal/app/apptest", "internal/blob/blobtest"}},
		{pkg: "internal/api", testImports: []string{"internal/web"}, want: "a test of internal/api imports internal/web: interfaces do not import each other"},

		{pkg: "internal/user", imports: []string{"internal/audit", "internal/db", "internal/secret"}},
		{pkg: "internal/audit", imports: []string{"internal/user"}, want: "user comes after audit in the list of features"},
		{pkg: "internal/repo", imports: []string{"internal/ci"}, want: "ci comes after repo in the list of features"},
		{pkg: "internal/repo", imports: []string{"internal/ci/config"}, want: "ci comes after repo in the list of features"},
		{pkg: "internal/ci", imports: []string{"internal/repo", "internal/ci/config"}},
		{pkg: "internal/ci/config", imports: []string{"internal/ci", "internal/plan"}},
		{pkg: "internal/ci", imports: []string{"internal/api"}, want: "only app imports interfaces"},
		{pkg: "internal/ci", imports: []string{"internal/config"}, want: "only app and cmd import config"},
		{pkg: "internal/ci", imports: []string{"internal/app"}, want: "only cmd imports app"},
		{pkg: "internal/user", testImports: []string{"internal/project"}, want: "project comes after user in the list of features"},
		{pkg: "internal/user", testImports: []string{"internal/db/dbtest"}},

		{pkg: "internal/db", imports: []string{"internal/errs"}},
		{pkg: "internal/queue", imports: []string{"internal/user"}, want: "only interfaces, features and app import features"},
		{pkg: "internal/git", imports: []string{"internal/githttp"}, want: "only app imports interfaces"},
		{pkg: "internal/blob", imports: []string{"internal/config"}, want: "only app and cmd import config"},
		{pkg: "internal/db/dbtest", imports: []string{"internal/db"}},
		{pkg: "internal/db/dbtest", imports: []string{"internal/user"}, want: "only interfaces, features and app import features"},
		{pkg: "internal/queue", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},
		{pkg: "internal/queue", testImports: []string{"internal/db/dbtest"}},
		{pkg: "internal/db", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},

		{pkg: "internal/runner", imports: []string{"internal/ci"}, want: "only interfaces, features and app import features"},
		{pkg: "internal/runner", imports: []string{"internal/errs"}, want: "only interfaces, features, platform and app import platform"},
		{pkg: "internal/runner", imports: []string{"internal/expand"}},
		{pkg: "internal/runner", imports: []string{"internal/api"}, want: "only app imports interfaces"},
		{pkg: "internal/runner", testImports: []string{"internal/app/apptest", "internal/git/gittest"}},
		{pkg: "internal/ci", imports: []string{"internal/runner"}, want: "only app imports clients"},

		{pkg: "internal/app", imports: []string{"internal/config", "internal/api", "internal/web", "internal/ci", "internal/db", "internal/runner"}},
		{pkg: "internal/app", imports: []string{"internal/db/dbtest"}, want: "it is a package for tests only"},
		{pkg: "internal/app/apptest", imports: []string{"internal/app", "internal/config", "internal/db/dbtest", "internal/user"}},
		{pkg: "internal/apptest", imports: []string{"internal/app", "internal/config", "internal/db/dbtest"}},
		{pkg: "internal/config", imports: []string{"internal/errs"}, want: "only interfaces, features, platform and app import platform"},
		{pkg: "cmd/svc", imports: []string{"internal/app", "internal/config"}},
		{pkg: "cmd/svc", imports: []string{"internal/user"}, want: "only interfaces, features and app import features"},
		{pkg: "cmd/svc", imports: []string{"internal/db"}, want: "import platform"},
		{pkg: "cmd/svc", imports: []string{"internal/api"}, want: "only app imports interfaces"},
		{pkg: "cmd/svc", imports: []string{"internal/app/apptest"}, want: "it is a package for tests only"},

		{pkg: "bench", imports: []string{"internal/app/apptest", "internal/user"}},
		{pkg: "test/script", testImports: []string{"internal/app/apptest"}},
		{pkg: "internal/api", imports: []string{"bench"}, want: "nothing imports bench/, scripts/ and test/"},
		{pkg: "internal/api", imports: []string{"internal/arch"}, want: "nothing imports it"},
		{pkg: "internal/utils", want: "internal/utils is in no layer: add it to"},
		{pkg: "pkg/client", want: "pkg/client is in no layer"},
		{pkg: ".", want: ". is in no layer"},
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
