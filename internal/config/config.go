// Package config reads the settings of the server into one Config.
//
// A setting is taken from the first of these that has it: a flag, an
// environment variable, the configuration file, the default. All of them come
// from one table (see settings): a setting whose key is data_dir is the line
// data_dir of the file, the variable SVC_DATA_DIR and the flag --data-dir.
//
// Settings are read once, at the start, and passed on as values: only the
// wiring and the commands import this package.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Config contains all settings, validated. A Config can be logged: its secrets are
// hidden.
type Config struct {
	Addr             string    // host:port of the HTTP server
	DataDir          string    // absolute
	ExternalURL      string    // no slash at the end; empty when not given and the port of Addr is 0
	DatabaseURL      SecretURL // empty: SQLite in DataDir
	BlobURL          SecretURL // empty: files in DataDir
	RootPassword     Secret    // empty: generate one
	RootToken        Secret    // empty: generate one
	SSHAddr          string    // host:port; empty: no SSH server
	SSHPort          int       // in clone URLs; 0: the port of SSHAddr
	PagesAddr        string    // host:port; empty: no Pages server
	PagesTLSAddr     string    // host:port; empty: none over TLS
	PagesURL         string    // no slash at the end; empty when it depends on a port that the system chooses
	PagesCert        string    // file; empty: none
	PagesKey         string    // file
	PagesACMEURL     string    // empty: no automatic certificates
	PagesACMEEmail   string
	PagesACMERoot    string            // file; empty: the CA certificates of the system
	SMTPURL          SecretURL         // empty: no email is sent
	Tier             string            // free, premium or ultimate
	Hosted           bool              // the API behaves like that of the hosted service
	ServiceName      string            // name in cookies, token prefixes and other identifiers
	TokenPrefix      string            // prefix of tokens; empty: see Tokens
	CookiePrefix     string            // prefix of cookie names; empty: see Cookies
	ErrorBackendName string            // name in the identifiers of error tracking
	Storages         map[string]string // absolute directory by name; always includes "default"
	// Buckets are the storages in object storage: bucket URLs, or "s3" for the
	// object storage of the instance. Their directories in Storages are caches.
	Buckets           map[string]SecretURL
	GitCacheDir       string
	GitCacheSize      int64
	Runner            string   // builtin or off
	RunnerProjects    []string // full paths of projects and groups that the built-in runner serves; empty: all
	RunnerTags        []string // of the built-in runner; empty: jobs without tags
	RunnerOpenSignUp  bool     // the built-in runner runs jobs even if anyone can sign up
	RunnerURL         string   // of the server whose jobs "svc runner" runs
	RunnerToken       Secret   // of "svc runner"
	RunnerConcurrency int      // maximum number of concurrent jobs; 0: the runner decides
	RunnerDir         string   // absolute
	Example           bool     // create an example project in an empty instance
	LogFormat         string   // auto, text or json; auto: text on a terminal, else json
	LogLevel          slog.Level
	MinFreeDisk       DiskSpace      // the server is not ready if less is free
	ShutdownDelay     time.Duration  // how long a stopping server still accepts connections
	ShutdownTimeout   time.Duration  // how long a stopping server waits for running requests
	ProxyProtocol     []netip.Prefix // load balancers whose PROXY protocol headers are trusted
	TrustedProxies    []netip.Prefix // proxies whose X-Forwarded-* headers are trusted
	Providers         Providers      // identity providers for sign-in

	ReadTimeout              time.Duration // for the queries of a list or search
	AnonymousReadTimeout     time.Duration // the same for anonymous callers
	MaxConnections           int           // of all listeners; 0: a third of the open files limit
	MaxConnectionsPerAddress int           // 0: no limit
	GitMemory                int64         // bytes that one git process may allocate; 0: git decides
	CodeIndexFile            int64         // bytes of the largest file whose content is indexed for code search
	CodeIndexProject         int64         // bytes of a project that are indexed for code search; 0: no index
}

// Load merges the defaults, the configuration file, the environment (in the form of
// os.Environ) and the flags that were set. fs may be nil or contain only some of the
// flags. The error lists all invalid settings, one per line.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	c, _, err := loadSources(fs, environ)
	return c, err
}

// loadSources is Load, but also returns the sources in order of increasing
// precedence: file, environment, flags.
func loadSources(fs *pflag.FlagSet, environ []string) (Config, []layer, error) {
	env, path, faults := fromEnviron(environ)
	flags := fromFlags(fs)
	if v, ok := flags[fileKey]; ok {
		path = v.text
	}
	file, fileFaults := fromFile(path)
	faults = append(faults, fileFaults...)

	sources := []layer{file, env, flags}
	var c Config
	for _, s := range settings() {
		standard := layer{s.key: {text: s.def, origin: "config: default of " + s.key}}
		for _, l := range append([]layer{standard}, sources...) {
			v, ok := l[s.key]
			if !ok {
				continue
			}
			if err := s.field.set(&c, v.text); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", v.origin, err))
			}
		}
	}
	faults = append(faults, c.complete()...)
	if len(faults) > 0 {
		return Config{}, nil, errors.Join(faults...)
	}
	return c, sources, nil
}

// complete sets the defaults that depend on other settings, and returns errors that
// involve several settings.
func (c *Config) complete() []error {
	if _, port, _ := net.SplitHostPort(c.Addr); c.ExternalURL == "" && port != "0" {
		c.ExternalURL = DefaultExternalURL(c.Addr)
	}
	if c.Storages[defaultStorage] == "" {
		if c.Storages == nil {
			c.Storages = make(map[string]string)
		}
		c.Storages[defaultStorage] = filepath.Join(c.DataDir, "repositories")
	}
	if c.GitCacheDir == "" {
		c.GitCacheDir = filepath.Join(c.DataDir, "git-cache")
	}
	c.splitBuckets()
	if c.RunnerDir == "" {
		c.RunnerDir = filepath.Join(c.DataDir, "runner")
	}
	var faults []error
	owner := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(c.Storages)) {
		dir := c.Storages[name]
		if first, taken := owner[dir]; taken {
			faults = append(faults, fmt.Errorf("config: storages: %q and %q are the same directory %s", first, name, dir))
			continue
		}
		owner[dir] = name
	}
	return faults
}

// splitBuckets copies the URLs of storages in object storage to Buckets, and
// replaces them in Storages by cache directories.
func (c *Config) splitBuckets() {
	for name, place := range c.Storages {
		if !isBucket(place) {
			continue
		}
		if c.Buckets == nil {
			c.Buckets = make(map[string]SecretURL)
		}
		c.Buckets[name] = SecretURL(place)
		c.Storages[name] = filepath.Join(c.GitCacheDir, name)
	}
}

// DefaultExternalURL returns the external URL of a server that listens on addr, if
// none is configured. Load leaves ExternalURL empty if the system chooses the
// port; the code that opens the listener then calls this function.
func DefaultExternalURL(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	// A server that listens on all addresses has no specific host.
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return origin("http", net.JoinHostPort(host, port))
}

// DefaultPagesURL returns the URL of the Pages sites of a server without pages_url.
// It is only usable on the machine itself. It is never derived from the external
// URL: sites on a subdomain of the instance could set cookies for the instance, and
// browsers would send its cookies with their requests.
func DefaultPagesURL(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil && port != "80" {
		return "http://" + net.JoinHostPort("pages.localhost", port)
	}
	return "http://pages.localhost"
}

// String lists all settings as key=value, with secrets hidden.
func (c Config) String() string {
	var parts []string
	for _, s := range settings() {
		parts = append(parts, fmt.Sprintf("%s=%v", s.key, s.field.get(&c)))
	}
	return strings.Join(parts, " ")
}

// LogValue returns all settings as one group, with secrets hidden.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, s := range settings() {
		attrs = append(attrs, slog.Any(s.key, s.field.get(&c)))
	}
	return slog.GroupValue(attrs...)
}

// Cookies returns the prefix of cookie names: CookiePrefix, or the service name.
func (c *Config) Cookies() string { return cmp.Or(c.CookiePrefix, c.ServiceName) }

// Tokens returns the prefix of tokens: TokenPrefix, or the service name. If the
// service is named gitlab, the prefix is gl.
func (c *Config) Tokens() string {
	switch {
	case c.TokenPrefix != "":
		return c.TokenPrefix
	case c.ServiceName == "gitlab":
		return "gl"
	}
	return c.ServiceName
}
