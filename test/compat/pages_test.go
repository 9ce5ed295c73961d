package compat

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func portOf(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// tool returns the path of a program of the tools module, and builds it if
// necessary.
func tool(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("go", "-C", filepath.Join("..", "..", "tools"), "tool", "-n", name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	var fault strings.Builder
	cmd.Stderr = &fault
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, fault.String())
	}
	return strings.TrimSpace(string(out))
}

// daemon runs a program until the test ends.
func daemon(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log := &output{}
	cmd.Stdout, cmd.Stderr = log, log
	p := run(t, cmd)
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGKILL) // it has no data
		<-p.ended
		if t.Failed() {
			t.Logf("%s says:\n%s", filepath.Base(cmd.Path), log.last(40))
		}
	})
}

// pebble is an ACME server that resolves every domain to this machine, and validates
// domains on the HTTP port of the server.
type pebble struct {
	directory string // URL of its directory
	root      string // file with its CA certificate
	client    *http.Client
	manage    string
}

func newPebble(t *testing.T, httpPort string) *pebble {
	t.Helper()
	dir := t.TempDir()
	listen, manage, dns := freeAddress(t), freeAddress(t), freeAddress(t)
	p := &pebble{directory: "https://" + listen + "/dir", root: filepath.Join(dir, "cert.pem"), manage: "https://" + manage}
	pool := selfSigned(t, p.root, filepath.Join(dir, "key.pem"))
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	config := map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": manage, "certificate": p.root, "privateKey": filepath.Join(dir, "key.pem"),
		"httpPort": json.Number(httpPort), "tlsPort": 1, "keyAlgorithm": "ecdsa", "retryAfter": map[string]int{"authz": 1, "order": 1},
	}}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, exec.Command(tool(t, "pebble-challtestsrv"), "-dnsserver", dns, "-management", freeAddress(t), "-defaultIPv6", "",
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""))
	server := exec.Command(tool(t, "pebble"), "-strict", "-config", file, "-dnsserver", dns)
	// Pebble rejects about a third of the nonces, as other servers may do.
	server.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=30")
	daemon(t, server)
	waitFor(t, "Pebble is ready", func() bool { return p.get(p.directory) != nil })
	return p
}

func (p *pebble) get(address string) []byte {
	res, err := p.client.Get(address)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// selfSigned writes a self-signed certificate for this machine, and its key.
func selfSigned(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, text := range map[string][]byte{certFile: certificate, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

// TestPages publishes a Pages site with the built-in runner, issues a certificate
// for its domain with Pebble, and reads the page with that certificate.
func TestPages(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		publishAndIssue(t)
	})
	if os.Getenv("TEST_POSTGRES") != "" {
		t.Run("postgres", func(t *testing.T) {
			t.Parallel()
			publishAndIssue(t, "SVC_DATABASE_URL="+newDatabase(t))
		})
	}
}

func publishAndIssue(t *testing.T, env ...string) {
	plain, secure := freeAddress(t), freeAddress(t)
	acme := newPebble(t, portOf(plain))
	s := start(t, append(env, "SVC_RUNNER=builtin", "SVC_PAGES_ADDR="+plain, "SVC_PAGES_TLS_ADDR="+secure, "SVC_PAGES_URL=http://pages.test",
		"SVC_PAGES_ACME_URL="+acme.directory, "SVC_PAGES_ACME_ROOT="+acme.root, "SVC_PAGES_ACME_EMAIL=pages@example.org")...)
	api := s.url + "/api/v4"
	var made struct{ ID int64 }
	request(t, "POST", api+"/projects", `{"path":"site","visibility":"public","pages_access_level":"public"}`, 201, &made)
	project := fmt.Sprintf("%s/projects/%d", api, made.ID)
	const yaml = "pages:\\n  script:\\n    - mkdir public\\n    - echo Made on $CI_COMMIT_BRANCH for $CI_PAGES_URL of $CI_PAGES_HOSTNAME below $CI_PAGES_DOMAIN > public/index.html\\n  artifacts: {paths: [public]}\\n"
	request(t, "POST", project+"/repository/files/.gitlab-ci.yml", `{"branch":"main","commit_message":"Publish","content":"`+yaml+`"}`, 201, nil)

	var own struct{ URL string }
	request(t, "GET", project+"/pages", "", 200, &own)
	page := "Made on main for " + own.URL + " of " + strings.TrimPrefix(own.URL, "http://") + " below pages.test\n"
	roots := x509.NewCertPool()
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := plain
			if strings.HasSuffix(addr, ":443") {
				to = secure
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		}},
	}
	visit := func(address string) (int, string, http.Header) {
		res, err := client.Get(address)
		if err != nil {
			return 0, err.Error(), nil
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return 0, err.Error(), nil
		}
		return res.StatusCode, string(text), res.Header
	}
	waitFor(t, "the job has published", func() bool {
		status, text, _ := visit(own.URL + "/")
		return status == http.StatusOK && text == page
	})

	request(t, "POST", project+"/pages/domains", `{"domain":"www.example.org","auto_ssl_enabled":true}`, 201, nil)
	status, text, _ := visit("http://www.example.org/")
	same(t, "the domain before its certificate", fmt.Sprint(status, " ", text), "200 "+page)
	var domain struct {
		URL         string
		Auto        bool `json:"auto_ssl_enabled"`
		Certificate *struct{ Expired bool }
	}
	waitFor(t, "there is a certificate", func() bool {
		request(t, "GET", project+"/pages/domains/www.example.org", "", 200, &domain)
		return domain.Certificate != nil
	})
	same(t, "the domain", fmt.Sprint(domain.URL, " ", domain.Auto, " ", domain.Certificate.Expired), "https://www.example.org true false")
	if !roots.AppendCertsFromPEM(acme.get(acme.manage + "/roots/0")) {
		t.Fatal("Pebble has no root")
	}
	status, text, _ = visit("https://www.example.org/")
	same(t, "the page by the certificate", fmt.Sprint(status, " ", text), "200 "+page)
	status, _, header := visit("http://www.example.org/x?y")
	same(t, "without TLS", fmt.Sprint(status, " ", header.Get("Location")), "301 https://www.example.org:"+portOf(secure)+"/x?y")
	var events []struct{ Details map[string]any }
	request(t, "GET", project+"/audit_events?per_page=1", "", 200, &events)
	if len(events) == 0 || events[0].Details["change"] != "certificate" {
		t.Errorf("the last audit event is %v", events)
	}
}
