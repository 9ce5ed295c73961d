package config

import (
	"fmt"
	"io"
	"net/url"
	"strings"
)

// hidden is shown instead of a secret.
const hidden = "xxxxx"

// Secret is a text that no log, format verb or encoder shows. A conversion to string
// reveals it.
type Secret string

// String returns hidden, or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes String for every verb, including %d and %#v.
func (s Secret) Format(f fmt.State, _ rune) { writeState(f, s.String()) }

// MarshalText returns String, so that JSON, YAML and logs do not contain the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretURL is a URL that may contain credentials; it is formatted without them. A
// conversion to string reveals them.
type SecretURL string

// shownParams returns the query parameters that are useful in a log and never
// secret. All others are omitted, because a driver may accept a password under a
// name that is not known here.
func shownParams() []string {
	return []string{"endpoint", "host", "port", "prefix", "region", "sslmode"}
}

// String returns the URL with its user and password hidden, without its fragment and
// with only the query parameters in shownParams.
func (s SecretURL) String() string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(string(s))
	// An @ in the path means that the password contains an unescaped slash.
	if err != nil || u.Scheme == "" || u.Opaque != "" || strings.Contains(u.Path, "@") {
		return hidden
	}
	query := u.Query()
	shown := make(url.Values)
	for _, name := range shownParams() {
		// An endpoint is also a URL and may contain a password.
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

// Format writes String for every verb, including %d and %#v.
func (s SecretURL) Format(f fmt.State, _ rune) { writeState(f, s.String()) }

// MarshalText returns String, so that JSON, YAML and logs do not contain the
// credentials.
func (s SecretURL) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// writeState ignores the error of the write: fmt reports it to its own caller.
func writeState(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
