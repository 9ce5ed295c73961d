package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// off is the value that disables an optional feature.
const off = "off"

var errEmpty = errors.New("must not be empty")

// errURL does not quote the text, which may contain a password. The messages of
// url.Parse are not shown either, because they quote it.
var errURL = errors.New("is not a valid URL (special characters in a username or password must be percent-encoded)")

var (
	hostPattern    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	storagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	tokenPattern   = regexp.MustCompile(`^[!-~]*$`)
)

// parseAddr parses host:port with a numeric port. An empty host means all addresses
// of the machine.
func parseAddr(text string) (string, error) {
	if text == "" {
		return "", errEmpty
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q is not of the form host:port", text)
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil && !hostPattern.MatchString(host) {
		return "", fmt.Errorf("%q: %q is neither a host name nor an IP address", text, host)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q: the port must be a number from 0 to 65535", text)
	}
	return text, nil
}

func parseAddrOrOff(text string) (string, error) {
	if text == off {
		return "", nil
	}
	return parseAddr(text)
}

// parsePort parses a port; 0 if the text is empty.
func parsePort(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a number from 1 to 65535", text)
	}
	return int(n), nil
}

// parseDir returns an absolute path, because git and other child processes do not
// run in the directory in which the server was started.
func parseDir(text string) (string, error) {
	if text == "" {
		return "", errEmpty
	}
	return filepath.Abs(text)
}

func parseDirOrNone(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseDir(text)
}

// maxCount is the maximum number of concurrent jobs of the runner.
const maxCount = 256

func parseCount(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", text, maxCount)
	}
	return n, nil
}

// maxConnections is the maximum of the connection limits.
const maxConnections = 10_000_000

// parseConnections parses a number of connections; 0 means the default or, without
// one, no limit.
func parseConnections(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxConnections {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, maxConnections)
	}
	return n, nil
}

// parseSize parses a number of bytes with a unit; 0 means the default.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if n, ok := withUnit(text); ok && n >= minGitMemory {
		return n, nil
	}
	return 0, fmt.Errorf("%q is not a size of at least 128MiB, such as 512MiB or 4GiB", text)
}

// parseIndexFile parses the maximum size of a file in the code index.
func parseIndexFile(text string) (int64, error) {
	if n, ok := withUnit(text); ok && n > 0 && n <= 64<<20 {
		return n, nil
	}
	return 0, fmt.Errorf("%q is not a size from 1MiB to 64MiB", text)
}

// parseIndexProject parses the maximum size of the code index of a project; 0 means
// no index.
func parseIndexProject(text string) (int64, error) {
	if n, ok := withUnit(text); ok {
		return n, nil
	}
	if text == "0" {
		return 0, nil
	}
	return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB, or 0", text)
}

// withUnit parses a number of bytes with a unit.
func withUnit(text string) (int64, bool) {
	for unit, shift := range map[string]uint{"MiB": 20, "GiB": 30, "TiB": 40} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseInt(digits, 10, 64)
			return n << shift, err == nil && n >= 0 && n <= 1<<(50-shift)
		}
	}
	return 0, false
}

// minGitMemory is the memory that git needs for small repositories.
const minGitMemory = 128 << 20

func parseExternalURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		return "", errors.New("is not a valid URL of the form https://host[:port], without a user")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q does not start with http:// or https://", text)
	case u.Hostname() == "":
		return "", fmt.Errorf("%q has no host", text)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%q must not have a query or a fragment", text)
	case strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("%q has the path %s: serving below a path is not supported, only at the root of a host", text, u.Path)
	}
	return origin(u.Scheme, strings.ToLower(u.Host)), nil
}

// origin returns a URL without a path in the form that browsers and other clients
// use: without the default port, because some clients compare origins as text.
func origin(scheme, host string) string {
	host = strings.TrimSuffix(host, ":")
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
	return scheme + "://" + host
}

// parseURLOrOff parses the URL of another server, with a path, or "off".
func parseURLOrOff(text string) (string, error) {
	if text == off || text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return "", errors.New("is not a valid URL of the form https://host/path, without a user")
	}
	return text, nil
}

// parseMail parses an email address, or an empty text.
func parseMail(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name != "" {
		return "", fmt.Errorf("%q is not an address of the form name@host", text)
	}
	return a.Address, nil
}

func parseDatabaseURL(text string) (SecretURL, error) {
	u, err := parseSecretURL(text, "postgres", "postgresql")
	if err != nil || u == nil {
		return "", err
	}
	// A database on a Unix socket has its directory in the query.
	if u.Hostname() == "" && u.Query().Get("host") == "" {
		return "", errors.New("has no host (for a unix socket: postgres:///name?host=/directory)")
	}
	return SecretURL(text), nil
}

func parseBlobURL(text string) (SecretURL, error) {
	u, err := parseSecretURL(text, "s3")
	if err != nil || u == nil {
		return "", err
	}
	if u.Hostname() == "" {
		return "", errors.New("has no bucket (s3://bucket)")
	}
	return SecretURL(text), nil
}

func parseSMTPURL(text string) (SecretURL, error) {
	u, err := parseSecretURL(text, "smtp", "smtps")
	if err != nil || u == nil {
		return "", err
	}
	if u.Hostname() == "" {
		return "", errors.New("has no host")
	}
	return SecretURL(text), nil
}

// parseSecretURL returns nil for an empty text. Its errors never quote the text.
func parseSecretURL(text string, schemes ...string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Path, "@") {
		return nil, errURL
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme && u.Opaque == "" {
			return u, nil
		}
	}
	return nil, fmt.Errorf("does not start with %s://", strings.Join(schemes, ":// or "))
}

func parsePassword(text string) (Secret, error) { return Secret(text), nil }

// parseToken rejects tokens that cannot be sent in a header.
func parseToken(text string) (Secret, error) {
	if !tokenPattern.MatchString(text) {
		return "", errors.New("must consist of visible ASCII characters, without spaces or line breaks")
	}
	return Secret(text), nil
}

func parseName(text string) (string, error) {
	if !namePattern.MatchString(text) {
		return "", fmt.Errorf("%q is not a name of 1 to 32 lower-case letters, digits and underscores that starts with a letter", text)
	}
	return text, nil
}

// parseNameOrNone is parseName, but also accepts an empty text.
func parseNameOrNone(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseName(text)
}

func oneOf(values ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		for _, v := range values {
			if text == v {
				return v, nil
			}
		}
		return "", fmt.Errorf("%q is not one of %s", text, strings.Join(values, ", "))
	}
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is not one of true, false", text)
}

func parseLevel(text string) (slog.Level, error) {
	level, err := oneOf("debug", "info", "warn", "error")(text)
	if err != nil {
		return 0, err
	}
	var l slog.Level
	return l, l.UnmarshalText([]byte(level))
}

// DiskSpace is an amount of disk space: bytes, or a percentage of the size of the
// file system.
type DiskSpace struct {
	Bytes   int64
	Percent int
}

// Of returns the space in bytes on a file system of the given size.
func (d DiskSpace) Of(size int64) int64 { return d.Bytes + size/100*int64(d.Percent) }

// String returns the space as it is written in the configuration.
func (d DiskSpace) String() string {
	if d.Percent > 0 {
		return strconv.Itoa(d.Percent) + "%"
	}
	return strconv.FormatInt(d.Bytes>>20, 10) + "MiB"
}

func parseDiskSpace(text string) (DiskSpace, error) {
	if text == "0" {
		return DiskSpace{}, nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n <= 100 {
			return DiskSpace{Percent: n}, nil
		}
	} else if n, ok := withUnit(text); ok {
		return DiskSpace{Bytes: n}, nil
	}
	return DiskSpace{}, fmt.Errorf("%q is not a space such as 500MiB, 2GiB or 5%%, or 0", text)
}

func parseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 30s or 2m", text)
	}
	if d <= 0 {
		return 0, fmt.Errorf("%q is not more than zero", text)
	}
	return d, nil
}

// maxDelay is the maximum delay. With a longer one, a stopping server would seem to
// hang.
const maxDelay = 10 * time.Minute

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 10s or 1m", text)
	}
	if d < 0 || d > maxDelay {
		return 0, fmt.Errorf("%q is not between 0s and %v", text, maxDelay)
	}
	return d, nil
}

// OwnBucket is the value for a storage in the object storage of the instance.
const OwnBucket = "s3"

// isBucket reports whether a storage is in object storage.
func isBucket(place string) bool { return place == OwnBucket || strings.HasPrefix(place, "s3://") }

// parseStorages parses name=path,…; paths become absolute. Bucket URLs are not
// changed.
func parseStorages(text string) (map[string]string, error) {
	storages := make(map[string]string)
	for _, item := range items(text) {
		name, path, found := strings.Cut(item, "=")
		if !found || path == "" {
			return nil, fmt.Errorf("%q is not of the form name=path", item)
		}
		if !storagePattern.MatchString(name) {
			return nil, fmt.Errorf("%q is not a name of 1 to 63 letters, digits, dashes and underscores", name)
		}
		if _, taken := storages[name]; taken {
			return nil, fmt.Errorf("%q is named twice", name)
		}
		if isBucket(path) {
			if path != OwnBucket {
				if _, err := parseBlobURL(path); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			storages[name] = path
			continue
		}
		dir, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		storages[name] = dir
	}
	return storages, nil
}

// parsePrefixes parses CIDR ranges and single addresses, separated by commas.
func parsePrefixes(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, item := range items(text) {
		if ip, err := netip.ParseAddr(item); err == nil && ip.Zone() == "" {
			prefixes = append(prefixes, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an IP address nor a range such as 10.0.0.0/8", item)
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}

// parsePaths parses full paths of projects and groups, separated by commas.
func parsePaths(text string) ([]string, error) {
	list := items(text)
	for i, item := range list {
		if list[i] = strings.Trim(item, "/"); list[i] == "" || strings.ContainsAny(item, " \t") {
			return nil, fmt.Errorf("%q is not the path of a project or group", item)
		}
	}
	return list, nil
}

// parseTags parses tags of a runner, separated by commas.
func parseTags(text string) ([]string, error) {
	list := items(text)
	if slices.Contains(list, "") {
		return nil, errors.New("a tag is empty")
	}
	return list, nil
}

// items splits a text at commas and trims the white space around each item.
func items(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
