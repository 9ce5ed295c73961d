package blobtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
)

func testRange(t *testing.T, s blob.Store) {
	put(t, s, "ten", "0123456789")
	put(t, s, "none", "")
	for _, tt := range []struct {
		key            string
		offset, length int64
		want           string
	}{
		{"ten", 0, -1, "0123456789"},
		{"ten", 0, 10, "0123456789"},
		{"ten", 0, 1, "0"},
		{"ten", 0, 0, ""},
		{"ten", 3, 4, "3456"},
		{"ten", 3, -1, "3456789"},
		{"ten", 8, 100, "89"},
		{"ten", 9, 1, "9"},
		{"ten", 10, 1, ""},
		{"ten", 10, -1, ""},
		{"ten", 11, -1, ""},
		{"ten", 1 << 40, 5, ""},
		{"ten", 3, 1<<63 - 1, "3456789"},
		{"ten", 1<<63 - 1, 1<<63 - 1, ""},
		{"none", 0, -1, ""},
		{"none", 0, 5, ""},
		{"none", 5, -1, ""},
	} {
		r, err := s.GetRange(t.Context(), tt.key, tt.offset, tt.length)
		if err != nil {
			t.Errorf("GetRange(%s, %d, %d): %v", tt.key, tt.offset, tt.length, err)
			continue
		}
		got, err := io.ReadAll(r)
		if string(got) != tt.want || err != nil {
			t.Errorf("GetRange(%s, %d, %d) = %q, %v; want %q", tt.key, tt.offset, tt.length, got, err, tt.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := s.GetRange(t.Context(), "ten", -1, 5)
	checkKind(t, "negative offset", err, errs.KindInvalid)
}

func testSeek(t *testing.T, s blob.Store) {
	put(t, s, "ten", "0123456789")
	o, err := s.Get(t.Context(), "ten")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for i, step := range []struct {
		offset int64
		whence int
		want   int64 // -1 if Seek fails
		read   string
	}{
		{0, io.SeekCurrent, 0, "01"},
		{0, io.SeekCurrent, 2, "23"},
		{1, io.SeekCurrent, 5, "56"},
		{0, io.SeekEnd, 10, ""},
		{-3, io.SeekEnd, 7, "789"},
		{0, io.SeekStart, 0, "0123456789"},
		{20, io.SeekStart, 20, ""},
		{-1, io.SeekStart, -1, ""},
		{2, io.SeekStart, 2, "2"},
		{0, 7, -1, ""},
		{0, io.SeekCurrent, 3, "3"},
	} {
		at, err := o.Seek(step.offset, step.whence)
		if step.want < 0 {
			if err == nil {
				t.Errorf("step %d: Seek(%d, %d) = %d, want an error", i, step.offset, step.whence, at)
			}
			continue
		}
		if err != nil || at != step.want {
			t.Fatalf("step %d: Seek(%d, %d) = %d, %v; want %d", i, step.offset, step.whence, at, err, step.want)
		}
		got := make([]byte, len(step.read))
		if _, err := io.ReadFull(o, got); err != nil || string(got) != step.read {
			t.Errorf("step %d: read %q, %v; want %q", i, got, err, step.read)
		}
	}
	if _, err := o.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read at the end = %d, %v", n, err)
	}
}

func testServe(t *testing.T, s blob.Store) {
	text := patternText(3, 300_000)
	if _, err := s.Put(t.Context(), "log", strings.NewReader(text), blob.Options{ContentType: "text/plain"}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, err := s.Get(r.Context(), "log")
		if err != nil {
			t.Error(err)
			return
		}
		defer o.Close()
		w.Header().Set("Content-Type", o.ContentType)
		http.ServeContent(w, r, "", o.ModTime, o)
	}))
	defer server.Close()
	for _, tt := range []struct {
		rng    string
		status int
		want   string
	}{
		{"", 200, text},
		{"bytes=0-0", 206, text[:1]},
		{"bytes=1000-1999", 206, text[1000:2000]},
		{"bytes=-10", 206, text[len(text)-10:]},
		{"bytes=300000-", 416, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.rng != "" {
			request.Header.Set("Range", tt.rng)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tt.status || (tt.status != 416 && string(body) != tt.want) {
			t.Errorf("%q: status %d, %d bytes, %v; want %d, %d bytes", tt.rng, response.StatusCode, len(body), err, tt.status, len(tt.want))
		}
	}
}

// testReadWhileReplaced checks that a reader returns the object that it opened, or
// an error.
func testReadWhileReplaced(t *testing.T, s blob.Store) {
	before, after := patternText(5, 9*mib), patternText(6, 9*mib)
	put(t, s, "k", before)
	o, err := s.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	got := make([]byte, mib)
	if _, err := io.ReadFull(o, got); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", after)
	if _, err := o.Seek(4*mib, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(o)
	if err != nil {
		checkKind(t, "reading on", err, errs.KindPrecondition)
		return
	}
	if string(rest) != before[4*mib:] {
		t.Error("the reader got the bytes of another object")
	}
}

func testURL(t *testing.T, s blob.Store) {
	put(t, s, "dir/a b+c.txt", "text")
	put(t, s, "other", "secret")
	for _, ttl := range []time.Duration{-1, 0, blob.MaxTTL + time.Second} {
		_, err := s.URL(t.Context(), "dir/a b+c.txt", ttl)
		checkKind(t, "URL for "+ttl.String(), err, errs.KindInvalid)
	}
	address, err := s.URL(t.Context(), "dir/a b+c.txt", time.Minute)
	if errs.Is(err, errs.KindNotAllowed) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(address string) (int, string) {
		response, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := fetch(address); status != 200 || body != "text" {
		t.Errorf("the address gives %d %q", status, body)
	}
	forged := strings.Replace(address, "dir/a%20b%2Bc.txt", "other", 1)
	if status, body := fetch(forged); forged == address || status != 403 {
		t.Errorf("%s gives %d %q", forged, status, body)
	}
}

// testUploadURL uploads objects to URLs.
func testUploadURL(t *testing.T, s blob.Store) {
	_, _, err := s.UploadURL(t.Context(), "dir/a b+c.txt", 4, 0)
	checkKind(t, "UploadURL without a life", err, errs.KindInvalid)
	address, header, err := s.UploadURL(t.Context(), "dir/a b+c.txt", 4, time.Minute)
	if errs.Is(err, errs.KindNotAllowed) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	send := func(text string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			r.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if status := send("text that is longer"); status < 400 {
		t.Errorf("an object of another size: %d", status)
	}
	if _, err := s.Stat(t.Context(), "dir/a b+c.txt"); !errs.Is(err, errs.KindNotFound) {
		t.Errorf("it is stored: %v", err)
	}
	if status := send("text"); status != 200 {
		t.Errorf("put: %d", status)
	}
	if info, err := s.Stat(t.Context(), "dir/a b+c.txt"); err != nil || info.Size != 4 {
		t.Errorf("%+v %v", info, err)
	}
}

// testCopy copies objects, also after they were replaced.
func testCopy(t *testing.T, s blob.Store) {
	put(t, s, "dir/a b+c.txt", "text")
	info, err := s.Stat(t.Context(), "dir/a b+c.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(t.Context(), info, "copy/of it"); err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), "copy/of it")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if text, err := io.ReadAll(o); err != nil || string(text) != "text" {
		t.Errorf("the copy has %q, %v", text, err)
	}
	put(t, s, "dir/a b+c.txt", "other text")
	checkKind(t, "copy of a replaced object", s.Copy(t.Context(), info, "second"), errs.KindPrecondition)
	if err := s.Delete(t.Context(), "dir/a b+c.txt"); err != nil {
		t.Fatal(err)
	}
	checkKind(t, "copy of a deleted object", s.Copy(t.Context(), info, "second"), errs.KindNotFound)
	checkKind(t, "copy to no key", s.Copy(t.Context(), info, "../x"), errs.KindInvalid)
}
