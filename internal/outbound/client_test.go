package outbound

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestClient(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("0123456789"))
	}))
	t.Cleanup(s.Close)
	local := Policy{Allowed: []string{strings.TrimPrefix(s.URL, "http://")}}
	get := func(p Policy, path string, limit int64) (int, string, error) {
		res, err := NewClient(p, nil, time.Minute, limit).Get(s.URL + path)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}
	if _, body, err := get(local, "/", 10); err != nil || body != "0123456789" {
		t.Errorf("%q, %v", body, err)
	}
	if _, _, err := get(local, "/", 9); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a large response: %v", err)
	}
	if status, _, err := get(local, "/moved", 100); err != nil || status != http.StatusFound {
		t.Errorf("a redirect: %d, %v", status, err)
	}
	if _, _, err := get(Policy{}, "/", 100); err == nil || !strings.Contains(err.Error(), ErrLocal.Error()) {
		t.Errorf("the local network: %v", err)
	}
}
