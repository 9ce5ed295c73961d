package signin

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"
)

const (
	// directoryTime bounds one sign-in, and each request of a synchronization.
	directoryTime = 10 * time.Second
	// maxConnections bounds the connections of this node to one directory.
	maxConnections = 8
	maxUsername    = 255
	maxPassword    = 1000
)

// directory talks to one LDAP directory.
type directory struct {
	Provider
	LDAP
	tls   *tls.Config
	slots chan struct{}
}

func newDirectory(p Provider, roots *x509.CertPool) *directory {
	d := &directory{Provider: p, LDAP: *p.LDAP, slots: make(chan struct{}, maxConnections)}
	d.tls = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if u, err := url.Parse(d.URL); err == nil {
		d.tls.ServerName = u.Hostname()
	}
	if d.GroupBase != "" {
		return d
	}
	// Groups are named by their DNs, which can be spelled in several ways.
	for _, list := range []*[]string{&d.RequiredGroups, &d.AdminGroups, &d.AuditorGroups} {
		var names []string
		for _, name := range *list {
			names = append(names, plainDN(name))
		}
		*list = names
	}
	var mappings []GroupSync
	for _, m := range d.GroupSync {
		m.Claim = plainDN(m.Claim)
		mappings = append(mappings, m)
	}
	d.GroupSync = mappings
	return d
}

// plainDN normalizes the spelling of a distinguished name. Other text is returned
// unchanged.
func plainDN(text string) string {
	dn, err := ldap.ParseDN(text)
	if err != nil {
		return text
	}
	return strings.ToLower(dn.String())
}

var (
	// errNoEntry means that the directory has no entry for a user.
	errNoEntry = errors.New("the directory has no such user")
	// errDirectory means that the directory cannot be used now.
	errDirectory = errors.New("the directory does not respond")
)

// session is a connection to a directory, bound to the account that searches.
type session struct {
	*directory
	conn *ldap.Conn
	end  func()
}

// connect opens a session. errDirectory.
func (d *directory) connect(ctx context.Context) (*session, error) {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many connections", errDirectory)
	}
	s := &session{directory: d, end: func() { <-d.slots }}
	conn, err := ldap.DialURL(d.URL, ldap.DialWithDialer(&net.Dialer{Timeout: directoryTime}), ldap.DialWithTLSConfig(d.tls))
	if err != nil {
		s.end()
		return nil, fmt.Errorf("%w: %w", errDirectory, err)
	}
	s.conn = conn
	conn.SetTimeout(directoryTime)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s.end = func() {
		stop()
		_ = conn.Close()
		<-d.slots
	}
	if d.StartTLS {
		err = conn.StartTLS(d.tls)
	}
	if err == nil {
		err = s.bindSearch()
	}
	if err != nil {
		s.end()
		return nil, fmt.Errorf("%w: %w", errDirectory, err)
	}
	return s, nil
}

// bindSearch binds to the account that searches.
func (s *session) bindSearch() error {
	if s.BindDN == "" {
		return s.conn.UnauthenticatedBind("")
	}
	return s.conn.Bind(s.BindDN, s.BindPassword)
}

// outage makes an error of the connection an errDirectory.
func outage(err error) error {
	for _, code := range []uint16{
		ldap.ErrorNetwork, ldap.LDAPResultTimeout, ldap.LDAPResultBusy, ldap.LDAPResultUnavailable, ldap.LDAPResultTimeLimitExceeded, ldap.LDAPResultServerDown,
	} {
		if ldap.IsErrorWithCode(err, code) {
			return fmt.Errorf("%w: %w", errDirectory, err)
		}
	}
	return err
}

// authenticate checks a username and a password, and returns the user. errDirectory;
// other errors are refusals.
func (d *directory) authenticate(ctx context.Context, username, password string) (*person, error) {
	// Directories accept an empty password as an anonymous bind.
	if username == "" || password == "" {
		return nil, errors.New("the username or the password is empty")
	}
	if len(username) > maxUsername || len(password) > maxPassword || !utf8.ValidString(username) || strings.ContainsRune(username+password, 0) {
		return nil, errors.New("the username or the password is too long or not valid text")
	}
	ctx, cancel := context.WithTimeout(ctx, directoryTime)
	defer cancel()
	s, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	entry, err := s.find(d.Base, ldap.ScopeWholeSubtree, "(&"+d.UserFilter+"("+d.UsernameAttribute+"="+ldap.EscapeFilter(username)+"))")
	if errors.Is(err, errNoEntry) {
		// Takes as long as a wrong password, so that the time does not show which
		// users exist.
		_ = s.conn.Bind(d.UsernameAttribute+"="+rand.Text()+","+d.Base, password)
	}
	if err != nil {
		return nil, err
	}
	err = s.conn.Bind(entry.DN, password)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultInvalidCredentials) {
		return nil, errors.New("the password is wrong")
	}
	if err == nil {
		err = s.bindSearch()
	}
	if err != nil {
		return nil, outage(fmt.Errorf("bind: %w", err))
	}
	return s.person(entry)
}

// find returns the only entry that a filter finds. errNoEntry; errDirectory.
func (s *session) find(base string, scope int, filter string) (*ldap.Entry, error) {
	attributes := []string{s.UsernameAttribute, s.NameAttribute, s.EmailAttribute, s.GroupsAttribute}
	request := ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, 2, int(directoryTime/time.Second), false, filter, attributes, nil)
	found, err := s.conn.Search(request)
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject):
		return nil, errNoEntry
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) || err == nil && len(found.Entries) > 1:
		return nil, errors.New("the directory has several such users")
	case err != nil:
		return nil, outage(fmt.Errorf("search: %w", err))
	case len(found.Entries) == 0:
		return nil, errNoEntry
	}
	return found.Entries[0], nil
}

// person reads an entry and its groups.
func (s *session) person(e *ldap.Entry) (*person, error) {
	text := func(name string) string { return strings.TrimSpace(e.GetEqualFoldAttributeValue(name)) }
	p := &person{
		uid: plainDN(e.DN), username: text(s.UsernameAttribute), name: text(s.NameAttribute), email: text(s.EmailAttribute), emailVerified: s.TrustEmail,
	}
	if p.uid == "" || len(p.uid) > maxUID || strings.ContainsRune(p.uid, 0) {
		return nil, errors.New("the DN is empty or too long")
	}
	if len(s.RequiredGroups)+len(s.AdminGroups)+len(s.AuditorGroups)+len(s.GroupSync) == 0 {
		return p, nil
	}
	if s.GroupBase == "" {
		for _, dn := range e.GetEqualFoldAttributeValues(s.GroupsAttribute) {
			p.groups = append(p.groups, plainDN(dn))
		}
		return p, nil
	}
	filter := strings.NewReplacer("{dn}", ldap.EscapeFilter(e.DN), "{username}", ldap.EscapeFilter(p.username)).Replace(s.GroupFilter)
	request := ldap.NewSearchRequest(s.GroupBase, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, maxGroups, int(directoryTime/time.Second), false, filter, []string{s.GroupAttribute}, nil)
	found, err := s.conn.Search(request)
	if err != nil {
		return nil, outage(fmt.Errorf("search groups: %w", err))
	}
	for _, g := range found.Entries {
		p.groups = append(p.groups, g.GetEqualFoldAttributeValues(s.GroupAttribute)...)
	}
	return p, nil
}

// lookUp returns the user with a DN, if the filter of users still finds them.
// errNoEntry; errDirectory.
func (s *session) lookUp(dn string) (*person, error) {
	e, err := s.find(dn, ldap.ScopeBaseObject, s.UserFilter)
	if err != nil {
		return nil, err
	}
	return s.person(e)
}
