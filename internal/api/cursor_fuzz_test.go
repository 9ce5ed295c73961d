package api

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCursor parses arbitrary cursors. The parser must not panic, the values that it
// returns must be valid in a query, and they must not change when they are encoded
// again.
func FuzzCursor(f *testing.F) {
	f.Add(writeCursor([]string{"id"}, []any{int64(7)}), "id", "")
	f.Add(writeCursor([]string{"name", "id"}, []any{"Ä \x01", int64(-1)}), "name", "id")
	for _, text := range []string{``, `{}`, `{"id":1.5}`, `{"id":"x"}`, `{"id":null}`, `[1]`, `{"id":99999999999999999999}`, `{"id":1}{"id":2}`, `{"id":"\u0000"}`} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)), "id", "")
	}
	f.Fuzz(func(t *testing.T, cursor, first, second string) {
		columns := []string{first}
		if second != "" && second != first {
			columns = append(columns, second)
		}
		values, err := readCursor(cursor, columns)
		if err != nil {
			return
		}
		if len(values) != len(columns) {
			t.Fatalf("%d values for %d columns", len(values), len(columns))
		}
		for _, v := range values {
			switch v := v.(type) {
			case int64:
			case string:
				if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
					t.Fatalf("text that a database refuses: %q", v)
				}
			default:
				t.Fatalf("a value of type %T", v)
			}
		}
		if first == "_kd" || second == "_kd" {
			return // the name is reserved for the direction
		}
		again, err := readCursor(writeCursor(columns, values), columns)
		if err != nil || !reflect.DeepEqual(again, values) {
			t.Fatalf("%v became %v, %v", values, again, err)
		}
	})
}

// FuzzQueryValue compares queryValue with the standard parser.
func FuzzQueryValue(f *testing.F) {
	for _, query := range []string{"private_token=abc", "a=b&private_token=x%20y", "private_token", "private_token=&private_token=z", "private%5Ftoken=x", "private_token=%zz", "&&=&private_token=+"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := queryValue(query, "private_token")
		want, err := url.ParseQuery(query)
		if err != nil || strings.ContainsAny(query, "%;") {
			return // an escaped name is not a credential, and an invalid escape does not authenticate
		}
		if values := want["private_token"]; len(values) > 0 && values[0] != got || len(values) == 0 && got != "" {
			t.Fatalf("%q gives %q, the standard parser %q", query, got, values)
		}
	})
}

// FuzzCredentials parses random credentials: a token that was sent must be found,
// and the header Private-Token takes precedence.
func FuzzCredentials(f *testing.F) {
	f.Add("Bearer abc", "", "", "")
	f.Add("Basic dXNlcjpwYXNz", "tok", "root", "private_token=x&sudo=1")
	f.Add("bearer", "\xff", "-1", "access_token=%00")
	f.Fuzz(func(t *testing.T, authorization, private, sudo, query string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v4/user", nil)
		r.URL.RawQuery = query
		r.Header["Authorization"] = []string{authorization}
		r.Header["Private-Token"] = []string{private}
		r.Header["Sudo"] = []string{sudo}
		found := credentialOf(r)
		if found.token == "" && (private != "" || found.kind == credentialToken) {
			t.Fatalf("a token was sent, and none was found: %+v", found)
		}
		if private != "" && found.token != private {
			t.Fatalf("the header PRIVATE-TOKEN does not win: %+v", found)
		}
	})
}
