package app

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"svc/internal/githttp"
	"svc/internal/sshd"
)

// HostKeyDir returns the directory of the SSH host keys. Nodes behind one host name
// need the same keys.
func (a *App) HostKeyDir() string { return filepath.Join(a.Config.DataDir, "ssh") }

// SSHAddr returns the address of the SSH server; empty if it is disabled.
func (s *Server) SSHAddr() string {
	if s.sshListener == nil {
		return ""
	}
	return s.sshListener.Addr().String()
}

// listenSSH opens the listener of Git over SSH, unless it is disabled.
func (s *Server) listenSSH() error {
	if s.Config.SSHAddr == "" || s.Config.SSHAddr == "off" {
		return nil
	}
	l, err := net.Listen("tcp", s.Config.SSHAddr)
	if err != nil {
		return fmt.Errorf("listen for Git over SSH (ssh_addr; \"off\" disables it): %w", err)
	}
	s.sshListener = s.proxied(s.gate.listen(l, false))
	s.Config.SSHAddr = l.Addr().String() // the system may have chosen the port
	return nil
}

// newSSH creates the SSH server of the listener.
func (s *Server) newSSH(m *metrics) error {
	if s.sshListener == nil {
		return nil
	}
	keys, err := sshd.HostKeys(s.HostKeyDir())
	if err != nil {
		return err
	}
	for _, key := range keys {
		s.Log.Info("ssh host key", "type", key.PublicKey().Type(), "fingerprint", ssh.FingerprintSHA256(key.PublicKey()))
	}
	s.ssh = sshd.New(sshd.Deps{
		Users: s.Users, Projects: s.Projects, Repos: s.Repos, LFS: s.LFS, URL: s.Config.ExternalURL, HostKeys: keys, Name: s.Config.ServiceName, Log: s.Log,
		Limits: sshd.Limits{Silence: s.sshSilence},
		Trace:  func(ctx context.Context) context.Context { return withRequestID(ctx, requestID("")) },
		Count:  func(service, outcome string) { m.git.WithLabelValues("ssh", service, outcome).Inc() },
	})
	return nil
}

func (s *Server) newGitHTTP(m *metrics) *githttp.Git {
	return githttp.New(githttp.Deps{
		Users: s.Users, Projects: s.Projects, Repos: s.Repos, LFS: s.LFS, Jobs: s.CI,
		Name: s.Config.ServiceName, Tokens: s.Config.Tokens(), URL: s.Config.ExternalURL, TempDir: s.tempDir(), Log: s.Log,
		Count: func(service, outcome string) { m.git.WithLabelValues("http", service, outcome).Inc() },
	})
}
