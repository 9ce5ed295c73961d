package blob

import (
	"bytes"
	"strings"
	"testing"

	"svc/internal/errs"
)

func TestParseS3(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]s3Config{
		"s3://b":  {bucket: "b"},
		"s3://b/": {bucket: "b"},
		"s3://b?": {bucket: "b"},
		"s3://my-bucket.name?endpoint=http://127.0.0.1:9000&region=eu-1&path_style=true&prefix=a/b/&access_key=A&secret_key=S%2F%2B": {
			bucket: "my-bucket.name", endpoint: "http://127.0.0.1:9000", region: "eu-1", pathStyle: true, prefix: "a/b", accessKey: "A", secretKey: "S/+",
		},
		"s3://b?prefix=&path_style=false": {bucket: "b"},
	} {
		got, err := parseS3(address)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", address, got, err, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush"
	for address, want := range map[string]string{
		"s3://":                     "s3://bucket",
		"s3:b":                      "s3://bucket",
		"s3://u:" + secret + "@b":   "s3://bucket",
		"s3://b:90":                 "s3://bucket",
		"s3://b#x":                  "s3://bucket",
		"s3://b/path":               "prefix",
		"s3://b?colour=blue":        `"colour"`,
		"s3://b?Region=x":           `"Region"`,
		"s3://b?region=a&region=b":  "region is given twice",
		"s3://b?path_style=perhaps": "path_style",
		"s3://b?endpoint=localhost": "endpoint",
		"s3://b?endpoint=ftp://x":   "endpoint",
		"s3://b?endpoint=http://":   "endpoint",
		"s3://b?prefix=../x":        "prefix",
		"s3://b?prefix=/":           "prefix",
		"s3://b?prefix=a//b":        "prefix",
		"s3://b?prefix=" + strings.Repeat("x", 200): "prefix",
		"s3://b?access_key=A":                       "secret_key",
		"s3://b?secret_key=" + secret:               "access_key",
		"s3://b?secret_key=" + secret + "%zz":       "not well formed",
		"s3://b?secret_key=" + secret + "&x=;":      "not well formed",
		"s3://b\x7f?secret_key=" + secret:           "not a URL",
		"file:///data?secret_key=" + secret:         "s3://",
		"S3 bucket " + secret:                       "s3://",
		"azblob://" + secret:                        "s3://",
	} {
		s, err := Open(t.Context(), address, t.TempDir())
		if err == nil {
			t.Errorf("Open(%q) = %v", address, s)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%q): %v; want %q and no secret", address, err, want)
		}
	}
}

func FuzzParseS3(f *testing.F) {
	f.Add("s3://b?endpoint=http://127.0.0.1:9000&region=eu&path_style=1&prefix=a/b&access_key=A&secret_key=S")
	f.Add("s3://b?prefix=%00")
	f.Fuzz(func(t *testing.T, address string) {
		c, err := parseS3(address)
		if err != nil {
			return
		}
		if c.bucket == "" || (c.prefix != "" && CheckKey(c.prefix) != nil) || (c.accessKey == "") != (c.secretKey == "") {
			t.Errorf("%q gives %+v", address, c)
		}
	})
}

// FuzzCheckKey checks that a valid key is a clean relative path and a valid prefix.
func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"a", "a/b", "../a", "/a", "a//b", "a/./b", "a\x00", "\xff", "...", "a/..b/c.."} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := CheckKey(key)
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Errorf("%q: %v", key, err)
			}
			return
		}
		if len(key) > MaxKey || strings.ContainsAny(key, "\x00\\\r\n") || strings.Contains("/"+key+"/", "/../") || strings.Contains("/"+key+"/", "//") {
			t.Errorf("%q passes", key)
		}
		for i := range len(key) + 1 {
			if prefix := strings.ToValidUTF8(key[:i], ""); checkPrefix(prefix) != nil {
				t.Errorf("prefix %q of key %q does not pass", prefix, key)
			}
		}
	})
}

func TestTrailer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size        int64
		contentType string
	}{
		{0, "a"}, {1<<63 - 1, strings.Repeat("x", maxType)}, {12, "text/plain; charset=utf-8"},
	} {
		b := trailer(tt.size, tt.contentType)
		if len(b) != trailerLen {
			t.Fatalf("length %d", len(b))
		}
		size, contentType, ok := parseTrailer(b)
		if !ok || size != tt.size || contentType != tt.contentType {
			t.Errorf("%+v comes back as %d %q %v", tt, size, contentType, ok)
		}
	}
}

func FuzzParseTrailer(f *testing.F) {
	f.Add(trailer(5, "text/plain"))
	f.Add(make([]byte, trailerLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		size, contentType, ok := parseTrailer(b)
		if ok && !bytes.Equal(trailer(size, contentType), b) {
			t.Errorf("%q reads as %d %q", b, size, contentType)
		}
	})
}

func TestPartsSuffice(t *testing.T) {
	t.Parallel()
	var total int64
	for number := 1; number <= maxParts; number++ {
		n := partSize(number)
		if n < 5<<20 || n > 128<<20 {
			t.Fatalf("part %d has %d bytes", number, n)
		}
		total += int64(n)
	}
	if total < 480<<30 {
		t.Errorf("at most %d bytes can be put", total)
	}
}
