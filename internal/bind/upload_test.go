package bind

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	multipartType = `multipart/form-data; boundary="=_b"`
	partsEnd      = "--=_b--\r\n"
)

// part returns a part of a body of multipartType.
func part(disposition, content string) string {
	return "--=_b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
}

func filePart(disposition, media, content string) string {
	return "--=_b\r\nContent-Disposition: form-data; " + disposition + "\r\nContent-Type: " + media + "\r\n\r\n" + content + "\r\n"
}

type uploadParams struct {
	Name   string       `param:"name"`
	Tags   []string     `param:"tags"`
	Avatar Opt[*Upload] `param:"avatar"`
	Files  []*Upload    `param:"files"`
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files were left behind: %v, %v", left, err)
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := NewLayout(reflect.TypeFor[uploadParams]())
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("0123456789", 20_000)
	in, err := message{media: multipartType, body: part(`name="name"`, "José") + part(`name="tags[]"`, "a") +
		filePart(`name="avatar"; filename="C:\pics\x.png"`, "image/png", content) +
		filePart(`name="files[]"; filename="a.txt"`, "text/plain; charset=utf-8", "A") +
		part(`name="tags[]"`, "b") + part(`name="files[]"; filename*=UTF-8''%e2%82%ac.txt`, "") + partsEnd,
	}.read(t, Limits{Body: 1 << 10, File: 1 << 20, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var got uploadParams
	if err := p.Bind(in, &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "José" || strings.Join(got.Tags, "") != "ab" || len(got.Files) != 2 || !got.Avatar.Set || got.Avatar.Null {
		t.Fatalf("bound %+v", got)
	}
	for _, c := range []struct {
		file                 *Upload
		name, media, content string
	}{
		{got.Avatar.Value, "x.png", "image/png", content},
		{got.Files[0], "a.txt", "text/plain", "A"},
		{got.Files[1], "€.txt", "application/octet-stream", ""},
	} {
		if c.file.Name != c.name || c.file.ContentType != c.media || c.file.Size != int64(len(c.content)) {
			t.Errorf("upload %+v, want %s %s", c.file, c.name, c.media)
		}
		// Two concurrent readers have separate positions.
		var one, two io.ReadSeekCloser = c.file.Open(), c.file.Open()
		first, err := io.ReadAll(one)
		if err != nil || string(first) != c.content {
			t.Errorf("%s reads %d bytes, %v", c.name, len(first), err)
		}
		if second, err := io.ReadAll(two); err != nil || string(second) != c.content {
			t.Errorf("%s reads %d bytes a second time, %v", c.name, len(second), err)
		}
		if _, err := one.Seek(0, io.SeekStart); err != nil {
			t.Error(err)
		}
		if again, err := io.ReadAll(one); err != nil || string(again) != c.content {
			t.Errorf("%s reads %d bytes after a seek, %v", c.name, len(again), err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	checkEmpty(t, dir)
	for range 2 {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := io.ReadAll(got.Avatar.Value.Open()); err == nil {
		t.Error("the file can be read after the end of the request")
	}
	checkEmpty(t, dir)
}

func TestUploadForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		body  string
		limit int64
		fault Fault
		error string
		check func(uploadParams) bool
	}{
		{name: "text for a file", body: part(`name="avatar"`, "x") + partsEnd, limit: 9, error: "avatar is invalid"},
		{name: "blank for a file clears it", body: part(`name="avatar"`, "") + partsEnd, limit: 9,
			check: func(p uploadParams) bool { return p.Avatar.Set && p.Avatar.Null }},
		{name: "no file chosen", body: filePart(`name="avatar"; filename=""`, "application/octet-stream", "") + part(`name="name"`, "n") + partsEnd, limit: 9,
			check: func(p uploadParams) bool { return !p.Avatar.Set && p.Name == "n" }},
		{name: "a file for text", body: filePart(`name="name"; filename="x"`, "text/plain", "x") + partsEnd, limit: 9, error: "name is invalid"},
		{name: "a list of files for one", body: filePart(`name="avatar[]"; filename="x"`, "text/plain", "x") + partsEnd, limit: 9, error: "avatar is invalid"},
		{name: "an endpoint without files", body: filePart(`name="avatar"; filename="x"`, "text/plain", "x") + part(`name="name"`, "n") + partsEnd, error: "avatar is invalid"},
		{name: "an unknown file", body: filePart(`name="other"; filename="x"`, "text/plain", "x") + part(`name="name"`, "n") + partsEnd, limit: 9,
			check: func(p uploadParams) bool { return p.Name == "n" }},
		{name: "a part without a name", body: part(`filename="x"`, "x") + part(`x="y"`, "x") + "--=_b\r\n\r\nx\r\n" + partsEnd, limit: 9,
			check: func(p uploadParams) bool { return reflect.ValueOf(p).IsZero() }},
		{name: "at the limit", body: filePart(`name="avatar"; filename="x"`, "text/plain", "123456789") + partsEnd, limit: 9,
			check: func(p uploadParams) bool { return p.Avatar.Value.Size == 9 }},
		{name: "over the limit", body: filePart(`name="avatar"; filename="x"`, "text/plain", "1234567890") + partsEnd, limit: 9, fault: FaultTooLarge},
		{name: "together over the limit", limit: 9, fault: FaultTooLarge,
			body: filePart(`name="avatar"; filename="x"`, "text/plain", "12345") + filePart(`name="avatar"; filename="x"`, "text/plain", "12345") + partsEnd},
		{name: "text over the limit", body: part(`name="name"`, strings.Repeat("x", 2001)) + partsEnd, limit: 9000, fault: FaultTooLarge},
		{name: "text together over the limit", body: strings.Repeat(part(`name="name"`, strings.Repeat("x", 500)), 5) + partsEnd, limit: 9000, fault: FaultTooLarge},
		{name: "not multipart", body: "hello", limit: 9, fault: FaultMalformed},
		{name: "no end", body: filePart(`name="avatar"; filename="x"`, "text/plain", "x"), limit: 9, fault: FaultMalformed},
		{name: "no end of the part", body: strings.TrimSuffix(filePart(`name="avatar"; filename="x"`, "text/plain", "x"), "\r\n"), limit: 9, fault: FaultMalformed},
		{name: "bad header", body: "--=_b\r\nContent-Disposition\r\n\r\nx\r\n" + partsEnd, limit: 9, fault: FaultMalformed},
		{name: "too many files left alone", body: strings.Repeat(part(`name="files[]"; filename=""`, ""), maxParams+1) + partsEnd, limit: 1 << 20, fault: FaultMalformed},
		{name: "too many files", body: strings.Repeat(part(`name="files[]"; filename="x"`, ""), MaxFiles+1) + partsEnd, limit: 1 << 20, fault: FaultMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, err := NewLayout(reflect.TypeFor[uploadParams]())
			if err != nil {
				t.Fatal(err)
			}
			in, err := message{media: multipartType, body: c.body}.read(t, Limits{Body: 2000, File: c.limit, TempDir: dir})
			defer checkEmpty(t, dir)
			if fault, text := faultOf(t, err); fault != c.fault {
				t.Fatalf("fault %d %q, want %d", fault, text, c.fault)
			}
			if err != nil {
				return
			}
			defer in.Close()
			var got uploadParams
			text := ""
			if err := p.Bind(in, &got); err != nil {
				text = err.Error()
			}
			if text != c.error || c.check != nil && !c.check(got) {
				t.Errorf("bound %+v, %q; want %q", got, text, c.error)
			}
		})
	}
}

// TestUploadDiskFault checks that a full disk is not reported as an error of the
// client.
func TestUploadDiskFault(t *testing.T) {
	t.Parallel()
	body := filePart(`name="avatar"; filename="x"`, "text/plain", "x") + partsEnd
	_, err := message{media: multipartType, body: body}.read(t, Limits{Body: 1000, File: 1000, TempDir: t.TempDir() + "/gone"})
	if err == nil {
		t.Fatal("no error")
	}
	if _, blamed := errors.AsType[*InputError](err); blamed || !strings.Contains(err.Error(), "spool an upload") {
		t.Errorf("error %T %v", err, err)
	}
}

// TestUploadCutOff checks that no file is left if a client disconnects during an
// upload.
func TestUploadCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	errs := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := ReadInput(r, w, nil, Limits{Body: 1 << 10, File: 1 << 20, TempDir: dir})
		if err == nil {
			in.Close()
		}
		errs <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	half := filePart(`name="avatar"; filename="x"`, "text/plain", strings.Repeat("x", 50_000))
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", multipartType, len(half)+500_000, half)
	conn.(*net.TCPConn).CloseWrite()
	if fault, text := faultOf(t, <-errs); fault != FaultIncomplete {
		t.Errorf("fault %d %q, want %d", fault, text, FaultIncomplete)
	}
	io.Copy(io.Discard, bufio.NewReader(conn))
	conn.Close()
	checkEmpty(t, dir)
}

func TestCleanName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"x.png":                      "x.png",
		"../../etc/passwd":           "passwd",
		`C:\Users\me\x.png`:          "x.png",
		`..\x`:                       "x",
		"a\x00b\nc\u202e.txt":        "abc.txt",
		"\xff\xfe":                   "file",
		"":                           "file",
		".":                          "file",
		"..":                         "file",
		"dir/":                       "file",
		" . ":                        "file",
		".env":                       ".env",
		"été 2024.png":               "été 2024.png",
		strings.Repeat("é", 200):     strings.Repeat("é", 127),
		strings.Repeat("x", 255):     strings.Repeat("x", 255),
		"a" + strings.Repeat("é", 9): "a" + strings.Repeat("é", 9),
	} {
		if got := CleanName(name); got != want || !utf8.ValidString(got) {
			t.Errorf("cleanName(%q) = %q, want %q", name, got, want)
		}
	}
}
