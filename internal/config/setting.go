package config

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// setting is one row of the table that the flags, the environment, the file
// and the documentation are made from.
type setting struct {
	key     string // its name in the file; the flag and the variable follow from it
	def     string // the default, parsed like any other value
	defNote string // says what an empty default comes to
	help    string // a phrase; the word in back quotes names the value, as pflag has it
	shape   shape
	field   field
}

// shape says how a value may be written in the file, beside as one text.
type shape int

const (
	plain shape = iota
	list        // also as a sequence of texts
	table       // also as a mapping of texts
)

const (
	envPrefix      = "SVC_"
	fileKey        = "config" // names the file, so it is no line of it
	fileHelp       = "read settings from the YAML `file`"
	defaultStorage = "default"
)

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string  { return envName(s.key) }

func envName(key string) string { return envPrefix + strings.ToUpper(key) }

// settings is the table, in the order in which settings are shown.
func settings() []setting {
	return []setting{
		{key: "addr", def: "127.0.0.1:8080",
			help:  "serve HTTP on `host:port`; port 0 takes a free one",
			field: at(func(c *Config) *string { return &c.Addr }, parseAddr)},
		{key: "data_dir", def: "./data",
			help:  "keep everything that is not kept elsewhere in this `directory`",
			field: at(func(c *Config) *string { return &c.DataDir }, parseDir)},
		{key: "external_url", defNote: "http://<addr>",
			help:  "the `URL` under which users reach the server",
			field: at(func(c *Config) *string { return &c.ExternalURL }, parseExternalURL)},
		{key: "database_url", defNote: "an SQLite file in data_dir",
			help:  "the `URL` of a PostgreSQL database, postgres://user:password@host/name",
			field: at(func(c *Config) *SecretURL { return &c.DatabaseURL }, parseDatabaseURL)},
		{key: "blob_url", defNote: "files in data_dir",
			help:  "the `URL` of an S3 bucket for uploads, s3://bucket?region=name",
			field: at(func(c *Config) *SecretURL { return &c.BlobURL }, parseBlobURL)},
		{key: "root_password", defNote: "generated and printed once",
			help:  "the `password` of the first administrator, root; used on the first start",
			field: at(func(c *Config) *Secret { return &c.RootPassword }, parsePassword)},
		{key: "root_token", defNote: "generated and printed once",
			help:  "a personal access `token` of root with every scope; used on the first start",
			field: at(func(c *Config) *Secret { return &c.RootToken }, parseToken)},
		{key: "ssh_addr", def: "127.0.0.1:2222",
			help:  "serve git over SSH on `host:port`, or off; port 0 takes a free one",
			field: at(func(c *Config) *string { return &c.SSHAddr }, parseAddrOrOff)},
		{key: "pages_addr", def: off,
			help:  "serve Pages sites over HTTP on `host:port`, or off; port 0 takes a free one",
			field: at(func(c *Config) *string { return &c.PagesAddr }, parseAddrOrOff)},
		{key: "pages_tls_addr", def: off,
			help:  "serve Pages sites over HTTPS on `host:port`, or off; port 0 takes a free one",
			field: at(func(c *Config) *string { return &c.PagesTLSAddr }, parseAddrOrOff)},
		{key: "pages_url", defNote: "http://pages.localhost:<port of pages_addr>",
			help:  "the `URL` below whose host Pages sites are: that of a group is at <group>.<host>; use a domain that shares nothing with that of external_url",
			field: at(func(c *Config) *string { return &c.PagesURL }, parseExternalURL)},
		{key: "pages_cert", defNote: "none",
			help:  "the `file` of the certificate for *.<host of pages_url>, PEM with intermediates; read anew when it changes",
			field: at(func(c *Config) *string { return &c.PagesCert }, parseDirOrNone)},
		{key: "pages_key", defNote: "none",
			help:  "the `file` of the key of pages_cert",
			field: at(func(c *Config) *string { return &c.PagesKey }, parseDirOrNone)},
		{key: "pages_acme_url", def: off,
			help:  "have certificates for Pages domains issued by the ACME server with this directory `URL`, or off; you agree to its terms by that",
			field: at(func(c *Config) *string { return &c.PagesACMEURL }, parseURLOrOff)},
		{key: "pages_acme_email", defNote: "none",
			help:  "the `address` that the ACME server may write to",
			field: at(func(c *Config) *string { return &c.PagesACMEEmail }, parseMail)},
		{key: "pages_acme_root", defNote: "those of the system",
			help:  "trust an ACME server whose certificate is signed by one in this PEM `file`",
			field: at(func(c *Config) *string { return &c.PagesACMERoot }, parseDirOrNone)},
		{key: "smtp_url", defNote: "no mail is sent",
			help:  "the `URL` of the mail server, smtp://user:password@host:port, or smtps:// for TLS from the start; ?from=address names the sender",
			field: at(func(c *Config) *SecretURL { return &c.SMTPURL }, parseSMTPURL)},
		{key: "tier", def: "ultimate",
			help:  "offer what belongs to this `tier`: free, premium or ultimate",
			field: at(func(c *Config) *string { return &c.Tier }, oneOf("free", "premium", "ultimate"))},
		{key: "hosted", def: "false",
			help:  "be the hosted service where the API tells that from a self-managed one",
			field: at(func(c *Config) *bool { return &c.Hosted }, parseBool)},
		{key: "service_name", def: "svc",
			help:  "the `name` inside cookies, token prefixes and other identifiers",
			field: at(func(c *Config) *string { return &c.ServiceName }, parseName)},
		{key: "error_backend_name", def: "errsvc",
			help:  "the `name` inside the identifiers of error tracking",
			field: at(func(c *Config) *string { return &c.ErrorBackendName }, parseName)},
		{key: "storages", defNote: "default=<data_dir>/repositories", shape: table,
			help:  "hold repositories in these directories, `name=path` with commas between; default is added when it is not named",
			field: at(func(c *Config) *map[string]string { return &c.Storages }, parseStorages)},
		{key: "runner", def: off,
			help:  "run CI jobs inside the server in this `mode`: builtin or off; see docs/admin/runners.md for what jobs can reach",
			field: at(func(c *Config) *string { return &c.Runner }, oneOf("builtin", off))},
		{key: "runner_projects", defNote: "all", shape: list,
			help:  "let the built-in runner run only jobs of these projects and groups, `paths` with commas between",
			field: at(func(c *Config) *[]string { return &c.RunnerProjects }, parsePaths)},
		{key: "runner_tags", defNote: "none", shape: list,
			help:  "let the built-in runner run only jobs with tags, all of which are among these `tags`, with commas between",
			field: at(func(c *Config) *[]string { return &c.RunnerTags }, parseTags)},
		{key: "runner_open_signup", def: "false",
			help:  "let the built-in runner run jobs although anyone can sign up",
			field: at(func(c *Config) *bool { return &c.RunnerOpenSignUp }, parseBool)},
		{key: "runner_concurrency", defNote: "one for each processor, at most 8",
			help:  "let the built-in runner and svc runner run this `number` of jobs at a time",
			field: at(func(c *Config) *int { return &c.RunnerConcurrency }, parseCount)},
		{key: "runner_dir", defNote: "<data_dir>/runner",
			help:  "keep builds and caches of the built-in runner or svc runner in this `directory`",
			field: at(func(c *Config) *string { return &c.RunnerDir }, parseDirOrNone)},
		{key: "runner_url", defNote: "http://<addr>",
			help:  "the `URL` of the server whose jobs svc runner runs",
			field: at(func(c *Config) *string { return &c.RunnerURL }, parseExternalURL)},
		{key: "runner_token", defNote: "none",
			help:  "the `token` of svc runner, as POST /user/runners gives it",
			field: at(func(c *Config) *Secret { return &c.RunnerToken }, parseToken)},
		{key: "example", def: "false",
			help:  "make a public group with an example project on the first start; only in an installation that has nothing yet",
			field: at(func(c *Config) *bool { return &c.Example }, parseBool)},
		{key: "log_format", def: "auto",
			help:  "write logs in this `format`: text, json, or auto, which is text on a terminal and json elsewhere",
			field: at(func(c *Config) *string { return &c.LogFormat }, oneOf("auto", "text", "json"))},
		{key: "log_level", def: "info",
			help:  "log from this `level` on: debug, info, warn or error",
			field: at(func(c *Config) *slog.Level { return &c.LogLevel }, parseLevel)},
		{key: "read_timeout", def: "10s",
			help:  "end the queries of a list or search that a signed-in user asks for after this `duration`",
			field: at(func(c *Config) *time.Duration { return &c.ReadTimeout }, parseTimeout)},
		{key: "anonymous_read_timeout", def: "5s",
			help:  "the same `duration` for requests without a user",
			field: at(func(c *Config) *time.Duration { return &c.AnonymousReadTimeout }, parseTimeout)},
		{key: "min_free_disk", def: "100MiB",
			help:  "report the server as not ready while a file system that it writes to has less than this `space` free, such as 2GiB or 5%; 0 never does",
			field: at(func(c *Config) *DiskSpace { return &c.MinFreeDisk }, parseDiskSpace)},
		{key: "shutdown_timeout", def: "30s",
			help:  "give running requests this `duration` to end on shutdown",
			field: at(func(c *Config) *time.Duration { return &c.ShutdownTimeout }, parseTimeout)},
		{key: "trusted_proxies", defNote: "none", shape: list,
			help:  "believe the X-Forwarded-* headers of these `addresses`, single or CIDR, with commas between",
			field: at(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, parsePrefixes)},
		{key: "max_connections", defNote: "half of the open files limit (RLIMIT_NOFILE)",
			help:  "accept at most this `number` of connections at a time, over all listeners; health probes are answered above it",
			field: at(func(c *Config) *int { return &c.MaxConnections }, parseConnections)},
		{key: "max_connections_per_address", def: "256",
			help:  "accept at most this `number` of connections at a time from one address (one /64 network for IPv6), 0 for no limit; trusted proxies have no limit",
			field: at(func(c *Config) *int { return &c.MaxConnectionsPerAddress }, parseConnections)},
		{key: "git_memory", defNote: "half of the memory, at least 1GiB",
			help:  "let one git process allocate at most this `size`, such as 512MiB or 4GiB; memory-mapped packs do not count",
			field: at(func(c *Config) *int64 { return &c.GitMemory }, parseSize)},
	}
}

// field reads and writes the place of a setting in a Config.
type field interface {
	set(c *Config, text string) error
	get(c *Config) any
}

// at makes the field of the given place and parser.
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
