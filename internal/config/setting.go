package config

import (
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"time"
)

// setting is a row of the table from which the flags, the environment variables, the
// keys of the file and the documentation are generated.
type setting struct {
	key     string // name in the file; the names of the flag and the variable are derived from it
	def     string // the default, parsed like other values
	defNote string // describes the default if def is empty
	help    string // a phrase; pflag shows the word in back quotes as the name of the value
	shape   shape
	field   field
}

// shape is the form of a value in the file, in addition to a string.
type shape int

const (
	plain  shape = iota
	list         // also a sequence of strings
	table        // also a mapping of strings
	nested       // also a sequence of mappings, which is parsed as YAML
)

const (
	envPrefix      = "SVC_"
	fileKey        = "config" // the path of the file, so not allowed in the file
	fileHelp       = "read options from the YAML `file`"
	defaultStorage = "default"
)

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string  { return envName(s.key) }

func envName(key string) string { return envPrefix + strings.ToUpper(key) }

// settings returns the table, in the order in which settings are shown.
func settings() []setting {
	return []setting{
		{key: "addr", def: "127.0.0.1:8080",
			help:  "listen for HTTP on `host:port`; port 0 picks a free port",
			field: at(func(c *Config) *string { return &c.Addr }, parseAddr)},
		{key: "data_dir", def: "./data",
			help:  "data `directory`: database, repositories, uploads and keys, unless configured elsewhere",
			field: at(func(c *Config) *string { return &c.DataDir }, parseDir)},
		{key: "external_url", defNote: "http://<addr>",
			help:  "`URL` that users open; links are built from it",
			field: at(func(c *Config) *string { return &c.ExternalURL }, parseExternalURL)},
		{key: "database_url", defNote: "an SQLite file in data_dir",
			help:  "`URL` of a PostgreSQL database, postgres://user:password@host/name",
			field: at(func(c *Config) *SecretURL { return &c.DatabaseURL }, parseDatabaseURL)},
		{key: "blob_url", defNote: "files in data_dir",
			help:  "`URL` of an S3 bucket for uploads, artifacts and logs, s3://bucket?region=name",
			field: at(func(c *Config) *SecretURL { return &c.BlobURL }, parseBlobURL)},
		{key: "root_password", defNote: "generated and printed once",
			help:  "`password` of the administrator root, used on first start",
			field: at(func(c *Config) *Secret { return &c.RootPassword }, parsePassword)},
		{key: "root_token", defNote: "generated and printed once",
			help:  "personal access `token` of root with all scopes, used on first start",
			field: at(func(c *Config) *Secret { return &c.RootToken }, parseToken)},
		{key: "ssh_addr", def: "127.0.0.1:2222",
			help:  "listen for git over SSH on `host:port`, or off; port 0 picks a free port",
			field: at(func(c *Config) *string { return &c.SSHAddr }, parseAddrOrOff)},
		{key: "ssh_port", defNote: "the port of ssh_addr",
			help:  "`port` of SSH clone URLs, if a load balancer or port forwarding listens on another port",
			field: at(func(c *Config) *int { return &c.SSHPort }, parsePort)},
		{key: "pages_addr", def: off,
			help:  "listen for Pages sites over HTTP on `host:port`, or off; port 0 picks a free port",
			field: at(func(c *Config) *string { return &c.PagesAddr }, parseAddrOrOff)},
		{key: "pages_tls_addr", def: off,
			help:  "listen for Pages sites over HTTPS on `host:port`, or off; port 0 picks a free port",
			field: at(func(c *Config) *string { return &c.PagesTLSAddr }, parseAddrOrOff)},
		{key: "pages_url", defNote: "http://pages.localhost:<port of pages_addr>",
			help:  "base `URL` of Pages: the sites of a group are at <group>.<host>; use a domain that has nothing in common with external_url",
			field: at(func(c *Config) *string { return &c.PagesURL }, parseExternalURL)},
		{key: "pages_cert", defNote: "none",
			help:  "certificate `file` for *.<host of pages_url>, PEM with intermediates; reloaded when it changes",
			field: at(func(c *Config) *string { return &c.PagesCert }, parseDirOrNone)},
		{key: "pages_key", defNote: "none",
			help:  "private key `file` of pages_cert",
			field: at(func(c *Config) *string { return &c.PagesKey }, parseDirOrNone)},
		{key: "pages_acme_url", def: off,
			help:  "ACME directory `URL` for certificates of Pages domains, or off; setting it means that you accept the terms of that server",
			field: at(func(c *Config) *string { return &c.PagesACMEURL }, parseURLOrOff)},
		{key: "pages_acme_email", defNote: "none",
			help:  "contact email `address` for the ACME server",
			field: at(func(c *Config) *string { return &c.PagesACMEEmail }, parseMail)},
		{key: "pages_acme_root", defNote: "system roots",
			help:  "PEM `file` with root certificates to trust for the ACME server",
			field: at(func(c *Config) *string { return &c.PagesACMERoot }, parseDirOrNone)},
		{key: "smtp_url", defNote: "no email is sent",
			help:  "`URL` of the mail server, smtp://user:password@host:port, or smtps:// for TLS from the start; ?from=address sets the sender",
			field: at(func(c *Config) *SecretURL { return &c.SMTPURL }, parseSMTPURL)},
		{key: "tier", def: "ultimate",
			help:  "`tier` of features to offer: free, premium or ultimate",
			field: at(func(c *Config) *string { return &c.Tier }, oneOf("free", "premium", "ultimate"))},
		{key: "hosted", def: "false",
			help:  "behave like the hosted service where the API differs from a self-managed instance",
			field: at(func(c *Config) *bool { return &c.Hosted }, parseBool)},
		{key: "service_name", def: "svc",
			help:  "service `name` in identifiers; cookies and tokens start with it unless cookie_prefix and token_prefix are set",
			field: at(func(c *Config) *string { return &c.ServiceName }, parseName)},
		{key: "token_prefix", defNote: "the service name; gl if that is gitlab",
			help:  "`text` that tokens start with, before pat-, dt- and so on; existing tokens keep working",
			field: at(func(c *Config) *string { return &c.TokenPrefix }, parseNameOrNone)},
		{key: "cookie_prefix", defNote: "the service name",
			help:  "`text` in the names of cookies, _<text>_session and so on; a change signs everyone out in the browser",
			field: at(func(c *Config) *string { return &c.CookiePrefix }, parseNameOrNone)},
		{key: "error_backend_name", def: "errsvc",
			help:  "service `name` in identifiers of error tracking",
			field: at(func(c *Config) *string { return &c.ErrorBackendName }, parseName)},
		{key: "storages", defNote: "default=<data_dir>/repositories", shape: table,
			help:  "repository storages, comma-separated `name=path`; name=s3 for the object store of blob_url, or name=s3://bucket?…; default is added if it is missing",
			field: storagesField{typed[map[string]string]{func(c *Config) *map[string]string { return &c.Storages }, parseStorages}}},
		{key: "git_cache_dir", defNote: "<data_dir>/git-cache",
			help:  "`directory` for the caches of repositories in object stores; it should be on a local disk, and may be deleted at any time",
			field: at(func(c *Config) *string { return &c.GitCacheDir }, parseDirOrNone)},
		{key: "git_cache_size", def: "10GiB",
			help:  "`size` that the cache of each such storage should not exceed",
			field: at(func(c *Config) *int64 { return &c.GitCacheSize }, parseSize)},
		{key: "runner", def: off,
			help:  "`mode` of the built-in runner: builtin or off; jobs run as the server's user, see docs/admin/runners.md",
			field: at(func(c *Config) *string { return &c.Runner }, oneOf("builtin", off))},
		{key: "runner_projects", defNote: "all", shape: list,
			help:  "limit the built-in runner to these projects and groups, comma-separated `paths`",
			field: at(func(c *Config) *[]string { return &c.RunnerProjects }, parsePaths)},
		{key: "runner_tags", defNote: "none", shape: list,
			help:  "limit the built-in runner to tagged jobs whose tags are all listed, comma-separated `tags`",
			field: at(func(c *Config) *[]string { return &c.RunnerTags }, parseTags)},
		{key: "runner_open_signup", def: "false",
			help:  "let the built-in runner run jobs while sign-up is open",
			field: at(func(c *Config) *bool { return &c.RunnerOpenSignUp }, parseBool)},
		{key: "runner_concurrency", defNote: "one per processor, at most 8",
			help:  "`number` of jobs that the built-in runner or svc runner runs at a time",
			field: at(func(c *Config) *int { return &c.RunnerConcurrency }, parseCount)},
		{key: "runner_dir", defNote: "<data_dir>/runner",
			help:  "`directory` for builds and caches of the built-in runner or svc runner",
			field: at(func(c *Config) *string { return &c.RunnerDir }, parseDirOrNone)},
		{key: "runner_url", defNote: "http://<addr>",
			help:  "`URL` of the server that svc runner gets jobs from",
			field: at(func(c *Config) *string { return &c.RunnerURL }, parseExternalURL)},
		{key: "runner_token", defNote: "none",
			help:  "`token` of svc runner, from POST /user/runners",
			field: at(func(c *Config) *Secret { return &c.RunnerToken }, parseToken)},
		{key: "example", def: "false",
			help:  "create a public group with an example project on first start, if the instance is empty",
			field: at(func(c *Config) *bool { return &c.Example }, parseBool)},
		{key: "log_format", def: "auto",
			help:  "log `format`: text, json, or auto (text on a terminal, json elsewhere)",
			field: at(func(c *Config) *string { return &c.LogFormat }, oneOf("auto", "text", "json"))},
		{key: "log_level", def: "info",
			help:  "lowest log `level`: debug, info, warn or error",
			field: at(func(c *Config) *slog.Level { return &c.LogLevel }, parseLevel)},
		{key: "read_timeout", def: "10s",
			help:  "maximum `duration` of the queries of a list or search by a signed-in user",
			field: at(func(c *Config) *time.Duration { return &c.ReadTimeout }, parseTimeout)},
		{key: "anonymous_read_timeout", def: "5s",
			help:  "maximum `duration` of the same queries for anonymous requests",
			field: at(func(c *Config) *time.Duration { return &c.AnonymousReadTimeout }, parseTimeout)},
		{key: "min_free_disk", def: "100MiB",
			help:  "not ready while a file system that svc writes to has less free `space` than this, such as 2GiB or 5%; 0 disables the check",
			field: at(func(c *Config) *DiskSpace { return &c.MinFreeDisk }, parseDiskSpace)},
		{key: "shutdown_delay", def: "0s",
			help:  "`duration` between SIGTERM, when /-/readiness starts to answer 503, and the end of the listeners; behind a load balancer, longer than its health checks take to notice",
			field: at(func(c *Config) *time.Duration { return &c.ShutdownDelay }, parseDelay)},
		{key: "shutdown_timeout", def: "30s",
			help:  "`duration` that running requests have to finish on shutdown",
			field: at(func(c *Config) *time.Duration { return &c.ShutdownTimeout }, parseTimeout)},
		{key: "proxy_protocol", defNote: "none", shape: list,
			help:  "trust the PROXY protocol (version 1 or 2) of HTTP and SSH connections from these `addresses` of load balancers, comma-separated, single or CIDR",
			field: at(func(c *Config) *[]netip.Prefix { return &c.ProxyProtocol }, parsePrefixes)},
		{key: "trusted_proxies", defNote: "none", shape: list,
			help:  "trust X-Forwarded-* headers from these `addresses`, comma-separated, single or CIDR",
			field: at(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, parsePrefixes)},
		{key: "providers", defNote: "none", shape: nested,
			help:  "identity providers that users sign in with, a `list` of mappings in YAML or JSON; see docs/admin/sign-in.md",
			field: at(func(c *Config) *Providers { return &c.Providers }, parseProviders)},
		{key: "max_connections", defNote: "a third of the open files limit (RLIMIT_NOFILE)",
			help:  "maximum `number` of open connections of all listeners; health checks are answered above it",
			field: at(func(c *Config) *int { return &c.MaxConnections }, parseConnections)},
		{key: "max_connections_per_address", def: "256",
			help:  "maximum `number` of open connections per address (IPv6: /64 network), 0 for no limit; trusted proxies have no limit",
			field: at(func(c *Config) *int { return &c.MaxConnectionsPerAddress }, parseConnections)},
		{key: "git_memory", defNote: "half of the memory, at least 1GiB",
			help:  "maximum memory `size` of one git process, such as 512MiB or 4GiB; memory-mapped packs do not count",
			field: at(func(c *Config) *int64 { return &c.GitMemory }, parseSize)},
		{key: "code_index_file", def: "1MiB",
			help:  "maximum `size` of a file whose content is indexed for code search; larger files are found by their paths",
			field: at(func(c *Config) *int64 { return &c.CodeIndexFile }, parseIndexFile)},
		{key: "code_index_project", def: "1GiB",
			help:  "maximum `size` of the files of a project whose content is indexed for code search; 0 disables the index",
			field: at(func(c *Config) *int64 { return &c.CodeIndexProject }, parseIndexProject)},
	}
}

// field gets and sets a setting in a Config.
type field interface {
	set(c *Config, text string) error
	get(c *Config) any
}

// at returns a field with the given pointer into a Config and parser.
func at[T any](place func(*Config) *T, parse func(string) (T, error)) field {
	return typed[T]{place: place, parse: parse}
}

type typed[T any] struct {
	place func(*Config) *T
	parse func(string) (T, error)
}

func (t typed[T]) set(c *Config, text string) error {
	v, err := t.parse(text)
	if err != nil {
		return err
	}
	*t.place(c) = v
	return nil
}

func (t typed[T]) get(c *Config) any { return *t.place(c) }

// storagesField shows bucket URLs, without their secrets, instead of cache
// directories.
type storagesField struct{ typed[map[string]string] }

func (f storagesField) get(c *Config) any {
	shown := maps.Clone(c.Storages)
	for name, bucket := range c.Buckets {
		shown[name] = OwnBucket
		if bucket != OwnBucket {
			shown[name] = bucket.String()
		}
	}
	return shown
}
