package blob

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// s3Config is a parsed s3:// address.
type s3Config struct {
	bucket    string
	endpoint  string
	region    string
	pathStyle bool
	prefix    string // without a trailing "/"
	accessKey string
	secretKey string
}

const maxPrefix = 1024 - MaxKey - len("/")

// parseS3 parses an s3:// address. Errors contain the name of the parameter, but no
// value that could be secret.
func parseS3(address string) (s3Config, error) {
	u, err := url.Parse(address)
	if err != nil {
		return s3Config{}, errors.New("the s3:// address is not a URL") // err contains the address
	}
	if u.Host == "" || u.User != nil || u.Port() != "" || u.Fragment != "" {
		return s3Config{}, errors.New("the s3:// address is not of the form s3://bucket?key=value")
	}
	if strings.Trim(u.Path, "/") != "" {
		return s3Config{}, errors.New("the s3:// address has a path; use the parameter prefix")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return s3Config{}, errors.New("the parameters of the s3:// address are not well formed")
	}
	c := s3Config{bucket: u.Host}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) != 1 {
			return s3Config{}, fmt.Errorf("s3:// address: %s is given twice", name)
		}
		if err := c.set(name, query.Get(name)); err != nil {
			return s3Config{}, fmt.Errorf("s3:// address: %w", err)
		}
	}
	if (c.accessKey == "") != (c.secretKey == "") {
		return s3Config{}, errors.New("s3:// address: access_key and secret_key go together")
	}
	return c, nil
}

func (c *s3Config) set(name, value string) error {
	switch name {
	case "endpoint":
		e, err := url.Parse(value)
		if err != nil || e.Host == "" || (e.Scheme != "http" && e.Scheme != "https") {
			return errors.New("endpoint is not an http:// or https:// address")
		}
		c.endpoint = value
	case "region":
		c.region = value
	case "path_style":
		on, err := strconv.ParseBool(value)
		if err != nil {
			return errors.New("path_style is neither true nor false")
		}
		c.pathStyle = on
	case "prefix":
		c.prefix = strings.TrimSuffix(value, "/")
		if err := CheckKey(c.prefix); value != "" && err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
		if len(c.prefix) > maxPrefix {
			return fmt.Errorf("prefix is over %d bytes", maxPrefix)
		}
	case "access_key":
		c.accessKey = value
	case "secret_key":
		c.secretKey = value
	default:
		return fmt.Errorf("unknown parameter %q", name)
	}
	return nil
}
