package gitremote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/git/pktline"
	"svc/internal/outbound"
)

// stream is a connection over SSH or TCP to one service of a repository.
type stream struct {
	in    *bufio.Reader
	out   io.Writer
	said  *excerpt // stderr of the service
	close func()
}

// Close closes the connection.
func (s *stream) Close() error {
	s.close()
	return nil
}

// ended returns the error of a connection that ended early. The server's message is
// not shown; it only indicates whether the repository does not exist.
func (s *stream) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil && (err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)) {
		return &Failure{
			Text:  "The server refused access to the repository. Check the URL, and that the user or SSH key may access it.",
			cause: errors.New(s.said.String()),
		}
	}
	return broken(ctx, err)
}

// excerpt stores the beginning of a text.
type excerpt struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *excerpt) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 1024-len(t.text))]...)
	return len(p), nil
}

func (t *excerpt) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// connect starts a service, and closes an earlier connection.
func (r *Remote) connect(ctx context.Context, service string) error {
	if r.stream != nil {
		_ = r.stream.Close()
	}
	port := map[string]string{"ssh": "22", "git": "9418"}[r.base.Scheme]
	address := net.JoinHostPort(r.base.Hostname(), cmp.Or(r.base.Port(), port))
	plain, err := r.policy.Dial(ctx, address, connectTime)
	if err != nil {
		return r.unreachable(ctx, err)
	}
	conn := newIdleConn(plain, r.idleTime())
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	end := func() {
		stop()
		conn.Close()
	}
	path := r.base.Path
	if strings.HasPrefix(path, "/~") {
		path = path[1:]
	}
	if r.base.Scheme == "git" {
		line := pktline.Append(nil, service+" "+path+"\x00host="+r.base.Host+"\x00")
		if _, err := conn.Write(line); err != nil {
			end()
			return broken(ctx, err)
		}
		r.stream = &stream{in: bufio.NewReaderSize(conn, 64<<10), out: conn, said: &excerpt{}, close: end}
		return nil
	}
	if r.stream, err = r.startSSH(ctx, conn, address, service+" "+quote(path), end); err != nil {
		end()
		return err
	}
	return nil
}

func (r *Remote) idleTime() time.Duration {
	if r.stall < time.Minute {
		return r.stall // only in tests
	}
	return headerTime
}

// errHostKey is the reason for rejecting a host key.
var errHostKey = errors.New("the host key is not among the known ones")

// startSSH runs a command over SSH.
func (r *Remote) startSSH(ctx context.Context, conn net.Conn, address, command string, end func()) (*stream, error) {
	if len(r.hostKeys) == 0 {
		return nil, fail("The host keys of the SSH server are not known. Add them first.")
	}
	config := &ssh.ClientConfig{
		User: cmp.Or(r.user, "git"), Timeout: connectTime, ClientVersion: "SSH-2.0-svc",
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if slices.Contains(r.hostKeys, keyLine(key)) {
				return nil
			}
			return errHostKey
		},
	}
	for _, line := range r.hostKeys { // request a known key
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			config.HostKeyAlgorithms = append(config.HostKeyAlgorithms, hostAlgorithms(key.Type())...)
		}
	}
	switch {
	case len(r.key) > 0:
		signer, err := ssh.ParsePrivateKey(r.key)
		if err != nil {
			return nil, err
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(signer))
	case r.password != "":
		config.Auth = append(config.Auth, ssh.Password(r.password))
	}
	sshConn, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, sshFailure(ctx, err)
	}
	client := ssh.NewClient(sshConn, channels, requests)
	session, err := client.NewSession()
	if err != nil {
		return nil, sshFailure(ctx, err)
	}
	s := &stream{said: &excerpt{}, close: func() {
		client.Close()
		end()
	}}
	session.Stderr = s.said
	if s.out, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in = bufio.NewReaderSize(out, 64<<10)
	if err := session.Start(command); err != nil {
		return nil, sshFailure(ctx, err)
	}
	return s, nil
}

// hostAlgorithms are the signature algorithms of a type of host key.
func hostAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// sshFailure returns the error of an SSH connection that was not established.
func sshFailure(ctx context.Context, err error) error {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errHostKey), errors.As(err, &negotiation):
		return &Failure{Text: "The SSH server does not have one of the known host keys. Check whether its keys were replaced, then update the known ones.", cause: err}
	case strings.Contains(err.Error(), "unable to authenticate"):
		return &Failure{Text: "The SSH server refused the credentials. Add the public key there, with access to the repository.", cause: ErrCredentials}
	}
	return &Failure{Text: "The SSH connection to the server failed.", Temporary: true, cause: err}
}

// ErrCredentials is the cause of a Failure if an SSH server rejected the
// credentials.
var ErrCredentials = errors.New("unable to authenticate")

// keyLine returns a public key as a line of an authorized_keys file.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// ParseHostKey parses a public key in the format of authorized_keys or known_hosts
// files.
func ParseHostKey(text string) (line string, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > 16<<10 || strings.ContainsAny(text, "\r\n") {
		return "", false
	}
	if key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(text)); err == nil && len(options) == 0 {
		return keyLine(key), true
	}
	marker, _, key, _, _, err := ssh.ParseKnownHosts([]byte(text))
	if err != nil || marker != "" {
		return "", false
	}
	return keyLine(key), true
}

// Fingerprint returns the SHA256 fingerprint of a key line; empty if it is not one.
func Fingerprint(line string) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// DetectHostKeys connects to an SSH server and returns its host keys.
func DetectHostKeys(ctx context.Context, a Address, policy outbound.Policy) ([]string, error) {
	r, err := Open(a, Options{Policy: policy})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	address := net.JoinHostPort(r.base.Hostname(), cmp.Or(r.base.Port(), "22"))
	var found []string
	var failure error
	for _, algorithms := range [][]string{
		{ssh.KeyAlgoED25519}, {ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}, {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	} {
		line, err := r.hostKey(ctx, address, algorithms)
		if line != "" {
			found = append(found, line)
		} else if failure == nil {
			failure = err
		}
		if ctx.Err() != nil || errors.Is(err, outbound.ErrLocal) {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, failure
	}
	return found, nil
}

// errSeen ends a connection after its host key was received.
var errSeen = errors.New("the host key was seen")

// hostKey returns the host key of a server for a list of algorithms.
func (r *Remote) hostKey(ctx context.Context, address string, algorithms []string) (string, error) {
	plain, err := r.policy.Dial(ctx, address, connectTime)
	if err != nil {
		return "", r.unreachable(ctx, err)
	}
	conn := newIdleConn(plain, connectTime)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	line := ""
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: "git", Timeout: connectTime, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			line = keyLine(key)
			return errSeen
		},
	})
	if line != "" {
		return line, nil
	}
	return "", &Failure{Text: "The server does not answer like an SSH server.", cause: err}
}

// quote quotes a path for the shell of an SSH server.
func quote(path string) string {
	var b bytes.Buffer
	b.WriteByte('\'')
	for _, c := range []byte(path) {
		if c == '\'' || c == '!' {
			b.WriteString(`'\` + string(c) + `'`)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// idleConn is a connection that is closed when nothing is sent or received for a
// while.
type idleConn struct {
	net.Conn
	after time.Duration
	timer *time.Timer
}

func newIdleConn(c net.Conn, after time.Duration) *idleConn {
	return &idleConn{Conn: c, after: after, timer: time.AfterFunc(after, func() { c.Close() })}
}

// Read implements io.Reader.
func (c *idleConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.progress(n)
	return n, err
}

// Write implements io.Writer.
func (c *idleConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.progress(n)
	return n, err
}

func (c *idleConn) progress(n int) {
	if n > 0 && c.timer.Stop() {
		c.timer.Reset(c.after)
	}
}

// Close closes the connection.
func (c *idleConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}
