package compat

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goHost is the host name of the server for the go command, because import paths
// have no ports. It is a name in the certificate of httptest.
const goHost = "example.com"

// TestGoGet downloads modules with the go command over HTTPS: one from a public
// project, and one from a private project of a subgroup, which needs a token in
// .netrc.
func TestGoGet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h := newHosting(t, s)
		open := h.project(t, "open")
		ask(h.ada.Projects.EditProject(open.ID, &gitlab.EditProjectOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
		sub := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Sub"), Path: new("sub"), ParentID: new(h.group(t, "team").ID)})).done(t, http.StatusCreated)
		closed := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{
			Path: new("closed"), NamespaceID: new(sub.ID), InitializeWithReadme: new(true), DefaultBranch: new("main"),
		})).done(t, http.StatusCreated)
		for _, p := range []*gitlab.Project{open, closed} {
			h.write(t, p, "main", "go.mod", "module "+goHost+"/"+p.PathWithNamespace+"\n\ngo 1.21\n", "Add a module")
			h.write(t, p, "main", "word/word.go", "package word\n", "Add a package")
			ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1.2.0"), Ref: new("main")})).done(t, http.StatusCreated)
		}

		dir, home := t.TempDir(), t.TempDir()
		proxy, certificate := serveHTTPS(t, s)
		files := map[string]string{filepath.Join(dir, "go.mod"): "module use\n\ngo 1.21\n", filepath.Join(home, "ca.pem"): certificate}
		write := func() {
			t.Helper()
			for name, text := range files {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		write()
		run := func(args ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = dir
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
				"GOFLAGS=-modcacherw", "GOPRIVATE=" + goHost, "GOPROXY=direct", "GOTOOLCHAIN=local", "GOPATH=" + filepath.Join(home, "go"), "GOCACHE=" + filepath.Join(home, "cache"),
				"HTTPS_PROXY=" + proxy, "SSL_CERT_FILE=" + filepath.Join(home, "ca.pem"), "GIT_SSL_CAINFO=" + filepath.Join(home, "ca.pem"),
			}
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := run("get", goHost+"/ada/open/word@latest"); err != nil || !strings.Contains(out, "added "+goHost+"/ada/open v1.2.0") {
			t.Fatalf("public: %v\n%s", err, out)
		}
		if out, err := run("get", goHost+"/team/sub/closed/word@latest"); err == nil {
			t.Fatalf("private, without a token:\n%s", out)
		}
		files[filepath.Join(home, ".netrc")] = "machine " + goHost + " login ada password " + h.adaToken + "\n"
		delete(files, filepath.Join(dir, "go.mod"))
		write()
		if out, err := run("get", goHost+"/team/sub/closed/word@latest"); err != nil || !strings.Contains(out, "added "+goHost+"/team/sub/closed v1.2.0") {
			t.Fatalf("private: %v\n%s", err, out)
		}
		out, err := run("list", goHost+"/ada/open/word", goHost+"/team/sub/closed/word")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		same(t, "packages", out, goHost+"/ada/open/word\n"+goHost+"/team/sub/closed/word\n")
	}, "SVC_EXTERNAL_URL=https://"+goHost)
}

// serveHTTPS serves s over HTTPS, like a load balancer. It returns a proxy that
// connects to it for every host, and the certificate.
func serveHTTPS(t *testing.T, s *server) (proxy, certificate string) {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}})
	t.Cleanup(secure.Close)
	tunnel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		out, err := net.Dial("tcp", secure.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = out.Close() }()
		w.WriteHeader(http.StatusOK)
		in, pending, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = in.Close() }()
		go func() { _, _ = io.Copy(in, out) }()
		_, _ = io.Copy(out, pending)
	}))
	t.Cleanup(tunnel.Close)
	return tunnel.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
}
