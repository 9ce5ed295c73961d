package config

import (
	"fmt"
	"io"
	"net/url"
	"strings"
)

// hidden stands where a secret would.
const hidden = "xxxxx"

// Secret is a text that no log, format verb or encoder shows. A conversion to
// string reveals it.
type Secret string

// String reveals only whether there is a secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes the same for every verb, %d and %#v too.
func (s Secret) Format(f fmt.State, _ rune) { writeState(f, s.String()) }

// MarshalText keeps the secret out of JSON, YAML and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretURL is a URL that may hold credentials; it is shown without them. A
// conversion to string reveals it.
type SecretURL string

// shownParams are the query parameters that are worth reading in a log and
// never secret. All others are left out: a driver may take a password under a
// name that is not known here.
func shownParams() []string {
	return []string{"endpoint", "host", "port", "prefix", "region", "sslmode"}
}

// String is the URL with its user and password hidden and without its
// fragment and all but a few query parameters.
func (s SecretURL) String() string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(string(s))
	// An @ in the path is the end of a password with a slash in it.
	if err != nil || u.Scheme == "" || u.Opaque != "" || strings.Contains(u.Path, "@") {
		return hidden
	}
	query := u.Query()
	shown := make(url.Values)
	for _, name := range shownParams() {
		// An endpoint is a URL, too, and may have its own password.
		if v := query.Get(name); v != "" && !strings.Contains(v, "@") {
			shown.Set(name, v)
		}
	}
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: shown.Encode()}
	if u.User != nil {
		clean.User = url.User(hidden)
	}
	return clean.String()
}

// Format writes the same for every verb, %d and %#v too.
func (s SecretURL) Format(f fmt.State, _ rune) { writeState(f, s.String()) }

// MarshalText keeps the credentials out of JSON, YAML and logs.
func (s SecretURL) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// writeState drops the error: fmt keeps it for its own caller.
func writeState(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
