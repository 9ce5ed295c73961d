package signin

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/setting"
)

const (
	// answerLife is how long the browser may take to come back for an answer that
	// was verified.
	answerLife = 2 * time.Minute
	// refreshKeys is how old metadata must be to be read again because of a signature
	// that no key of it verifies.
	refreshKeys = time.Minute
	// maxVerifications bounds the answers of one provider that a node verifies at once.
	maxVerifications = 2
	maxEntities      = 1000 // in one metadata document
	minRSABits       = 2048
)

// serviceProvider is this instance in its relation to one SAML identity provider.
type serviceProvider struct {
	Provider
	SAML
	db       *db.DB
	settings *setting.Service
	now      func() time.Time
	roots    *x509.CertPool
	metadata string // address of our metadata
	acs      string // address of our assertion consumer service
	document *document[identityProvider]
	slots    chan struct{}
}

// identityProvider has the parts of the metadata of an identity provider that svc needs.
type identityProvider struct {
	entityID     string
	sso          string // where requests go, with the HTTP-Redirect binding
	certificates []*x509.Certificate
	validUntil   time.Time // zero: without an end
}

// MetadataPath is where the metadata for a SAML provider are.
func MetadataPath(provider string) string { return "/users/auth/" + provider + "/metadata" }

func newServiceProvider(d Deps, p Provider, roots *x509.CertPool) *serviceProvider {
	sp := &serviceProvider{
		Provider: p, SAML: *p.SAML, db: d.DB, settings: d.Settings, now: d.Now, roots: roots,
		metadata: d.URL + MetadataPath(p.Name), acs: d.URL + CallbackPath(p.Name), slots: make(chan struct{}, maxVerifications),
		document: newDocument[identityProvider](d.Now),
	}
	if sp.EntityID == "" {
		sp.EntityID = sp.metadata
	}
	return sp
}

// check refuses a configuration that cannot work.
func (sp *serviceProvider) check() error {
	if sp.MetadataURL != "" {
		return nil
	}
	_, err := sp.read(context.Background())
	return err
}

func (sp *serviceProvider) options() *Provider { return &sp.Provider }

// discover returns the identity provider, by metadata that are not older than life
// and still valid.
func (sp *serviceProvider) discover(ctx context.Context, life time.Duration) (*identityProvider, error) {
	at, err := sp.document.get(ctx, life, sp.read)
	if err == nil && at.expired(sp.now()) != nil {
		at, err = sp.document.get(ctx, 0, sp.read)
	}
	if err != nil {
		return nil, err
	}
	return at, at.expired(sp.now())
}

func (at *identityProvider) expired(now time.Time) error {
	if at.validUntil.IsZero() || now.Before(at.validUntil) {
		return nil
	}
	return fmt.Errorf("metadata: they were valid until %s", at.validUntil.UTC().Format(time.RFC3339))
}

// read gets the metadata from where the configuration says.
func (sp *serviceProvider) read(ctx context.Context) (*identityProvider, error) {
	var at *identityProvider
	var err error
	switch {
	case sp.MetadataURL != "":
		at, err = sp.fetch(ctx)
	case len(sp.Metadata) > 0:
		at, err = sp.parseMetadata(sp.Metadata)
	default:
		at = &identityProvider{entityID: sp.IDPEntityID, sso: sp.IDPSSOURL, certificates: sp.IDPCertificates}
	}
	if err == nil {
		err = at.check(strings.HasPrefix(sp.MetadataURL, "https:"))
	}
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if err := at.expired(sp.now()); err != nil && sp.MetadataURL != "" {
		return nil, err
	}
	return at, nil
}

func (sp *serviceProvider) fetch(ctx context.Context) (*identityProvider, error) {
	client, err := outboundClient(ctx, sp.settings, sp.MetadataURL, sp.roots)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, sp.MetadataURL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/samlmetadata+xml, application/xml, text/xml")
	answer, err := client.Do(r)
	if err != nil {
		var fault *url.Error
		if errors.As(err, &fault) { // without the address, which may have a key in it
			err = fault.Err
		}
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answers with status %d", answer.StatusCode)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return sp.parseMetadata(text)
}

// parseMetadata reads the metadata of the identity provider, which may be one of
// several in a document.
func (sp *serviceProvider) parseMetadata(text []byte) (*identityProvider, error) {
	if bytes.Contains(text, []byte("<!DOCTYPE")) {
		return nil, errors.New("the document has a document type")
	}
	var all saml.EntitiesDescriptor
	var one saml.EntityDescriptor
	if err := xml.Unmarshal(text, &one); err == nil {
		all.EntityDescriptors = []saml.EntityDescriptor{one}
	} else if fault := xml.Unmarshal(text, &all); fault != nil {
		return nil, fmt.Errorf("the document cannot be read: %s", clip(err.Error()))
	}
	var found []*identityProvider
	if len(all.EntityDescriptors) > maxEntities {
		return nil, fmt.Errorf("the document has more than %d entities", maxEntities)
	}
	for i := range all.EntityDescriptors {
		e := &all.EntityDescriptors[i]
		if len(e.IDPSSODescriptors) == 0 || sp.IDPEntityID != "" && e.EntityID != sp.IDPEntityID {
			continue
		}
		at, err := readEntity(e)
		if err != nil {
			return nil, err
		}
		if all.ValidUntil != nil && (at.validUntil.IsZero() || all.ValidUntil.Before(at.validUntil)) {
			at.validUntil = *all.ValidUntil
		}
		found = append(found, at)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && sp.IDPEntityID != "":
		return nil, errors.New("the document has no identity provider with the ID in idp_entity_id")
	case len(found) == 0:
		return nil, errors.New("the document has no identity provider")
	}
	return nil, errors.New("the document has several identity providers: set idp_entity_id")
}

func readEntity(e *saml.EntityDescriptor) (*identityProvider, error) {
	at := &identityProvider{entityID: e.EntityID, validUntil: e.ValidUntil}
	for _, d := range e.IDPSSODescriptors {
		if d.ValidUntil != nil && (at.validUntil.IsZero() || d.ValidUntil.Before(at.validUntil)) {
			at.validUntil = *d.ValidUntil
		}
		for _, s := range d.SingleSignOnServices {
			if s.Binding == saml.HTTPRedirectBinding && at.sso == "" {
				at.sso = s.Location
			}
		}
		for _, k := range d.KeyDescriptors {
			if k.Use != "" && k.Use != "signing" {
				continue
			}
			for _, c := range k.KeyInfo.X509Data.X509Certificates {
				raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Data), ""))
				if err != nil {
					return nil, errors.New("a certificate is not in base64")
				}
				cert, err := x509.ParseCertificate(raw)
				if err != nil {
					return nil, fmt.Errorf("a certificate cannot be read: %w", err)
				}
				at.certificates = append(at.certificates, cert)
			}
		}
	}
	return at, nil
}

// check refuses a provider that cannot be used. https says that its metadata came
// by HTTPS.
func (at *identityProvider) check(https bool) error {
	if at.entityID == "" {
		return errors.New("the identity provider has no entity ID")
	}
	u, err := url.Parse(at.sso)
	if at.sso == "" || err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Scheme == "http" && https {
		return errors.New("the identity provider has no address for requests with the HTTP-Redirect binding that can be used")
	}
	// Signatures of ECDSA keys have a form of their own in XML, which is not supported.
	at.certificates = slices.DeleteFunc(slices.Clone(at.certificates), func(c *x509.Certificate) bool {
		key, ok := c.PublicKey.(*rsa.PublicKey)
		return !ok || key.N.BitLen() < minRSABits
	})
	if len(at.certificates) == 0 {
		return fmt.Errorf("the identity provider has no certificate for signatures with an RSA key of at least %d bits", minRSABits)
	}
	return nil
}

// requestID is the ID of the request of an attempt. It must not start with a digit.
func requestID(state string) string { return "_" + state }

// start returns the address at the identity provider, with a request in it.
func (sp *serviceProvider) start(ctx context.Context, a *attempt) (string, error) {
	at, err := sp.discover(ctx, rediscover)
	if err != nil {
		return "", err
	}
	create := true
	request := saml.AuthnRequest{
		ID: requestID(a.State), Version: "2.0", IssueInstant: sp.now().UTC(), Destination: at.sso, Issuer: &saml.Issuer{Value: sp.EntityID},
		ProtocolBinding: saml.HTTPPostBinding, AssertionConsumerServiceURL: sp.acs, NameIDPolicy: &saml.NameIDPolicy{AllowCreate: &create},
	}
	if sp.NameIDFormat != "" {
		request.NameIDPolicy.Format = &sp.NameIDFormat
	}
	doc := etree.NewDocument()
	doc.SetRoot(request.Element())
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // the level is valid
	if _, err := doc.WriteTo(w); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	// The signature is over this text, in this order.
	query := "SAMLRequest=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if sp.KeyPair != nil {
		signer, method, err := signingContext(sp.KeyPair)
		if err != nil {
			return "", err
		}
		query += "&SigAlg=" + url.QueryEscape(method)
		signature, err := signer.SignString(query)
		if err != nil {
			return "", fmt.Errorf("sign the request: %w", err)
		}
		query += "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	}
	mark := "?"
	if strings.Contains(at.sso, "?") {
		mark = "&"
	}
	return at.sso + mark + query, nil
}

func signingContext(pair *tls.Certificate) (*dsig.SigningContext, string, error) {
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, "", errors.New("the key is not an RSA key")
	}
	signer, err := dsig.NewSigningContext(key, pair.Certificate)
	if err != nil {
		return nil, "", err
	}
	return signer, dsig.RSASHA256SignatureMethod, signer.SetSignatureMethod(dsig.RSASHA256SignatureMethod)
}

// spMetadata is the part of the metadata of a service provider that we have.
type spMetadata struct {
	XMLName  xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
	EntityID string   `xml:"entityID,attr"`
	SP       struct {
		Protocols      string               `xml:"protocolSupportEnumeration,attr"`
		RequestsSigned bool                 `xml:"AuthnRequestsSigned,attr"`
		WantSigned     bool                 `xml:"WantAssertionsSigned,attr"`
		Keys           []saml.KeyDescriptor `xml:"KeyDescriptor"`
		NameIDFormat   string               `xml:"NameIDFormat,omitempty"`
		ACS            struct {
			Binding   string `xml:"Binding,attr"`
			Location  string `xml:"Location,attr"`
			Index     int    `xml:"index,attr"`
			IsDefault bool   `xml:"isDefault,attr"`
		} `xml:"AssertionConsumerService"`
	} `xml:"SPSSODescriptor"`
}

// Metadata returns the metadata that a SAML provider needs of this instance.
// NotFound.
func (s *Service) Metadata(provider string) ([]byte, error) {
	sp, ok := s.remotes[provider].(*serviceProvider)
	if !ok {
		return nil, errs.NotFound("")
	}
	m := spMetadata{EntityID: sp.EntityID}
	m.SP.Protocols, m.SP.WantSigned, m.SP.NameIDFormat = nsProtocol, true, sp.NameIDFormat
	m.SP.ACS.Binding, m.SP.ACS.Location, m.SP.ACS.IsDefault = saml.HTTPPostBinding, sp.acs, true
	if sp.KeyPair != nil {
		m.SP.RequestsSigned = true
		cert := base64.StdEncoding.EncodeToString(sp.KeyPair.Certificate[0])
		for _, use := range []string{"signing", "encryption"} {
			key := saml.KeyDescriptor{Use: use, KeyInfo: saml.KeyInfo{X509Data: saml.X509Data{X509Certificates: []saml.X509Certificate{{Data: cert}}}}}
			if use == "encryption" {
				for _, method := range []string{gcm256, gcm128, cbc256, cbc128, oaep} {
					key.EncryptionMethods = append(key.EncryptionMethods, saml.EncryptionMethod{Algorithm: method})
				}
			}
			m.SP.Keys = append(m.SP.Keys, key)
		}
	}
	text, err := xml.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("SAML metadata: %w", err)
	}
	return append([]byte(xml.Header), text...), nil
}

// Posted is what a SAML provider sends through the browser.
type Posted struct {
	Provider string
	Response string // SAMLResponse, in base64
	IP       string
}

// refusedParam is in the query with which the browser comes back after a refusal.
const refusedParam = "refused"

// savedAnswer is a verified answer between the two requests of the browser.
type savedAnswer struct {
	Request       string   `json:"request"` // that it answers
	UID           string   `json:"uid"`
	Username      string   `json:"username"`
	Name          string   `json:"name"`
	Email         string   `json:"email"`
	EmailVerified bool     `json:"email_verified"`
	Groups        []string `json:"groups"`
}

// Accept verifies an answer that a SAML provider sends by a form, and returns the
// local address where the browser goes on. The form comes from another site, so the
// browser sends no cookies with it: Finish checks who asked. NotFound if the
// provider is no SAML provider; Unavailable.
func (s *Service) Accept(ctx context.Context, in Posted) (string, error) {
	sp, ok := s.remotes[in.Provider].(*serviceProvider)
	if !ok {
		return "", errs.NotFound("")
	}
	query, err := sp.accept(ctx, in.Response)
	if err != nil {
		// The browser is refused in Finish, where the attempt is known.
		if err = s.refuse(ctx, in.Provider, in.IP, false, err); errs.Is(err, errs.KindUnavailable) {
			return "", err
		}
		query = url.Values{refusedParam: {"1"}}
	}
	return CallbackPath(in.Provider) + "?" + query.Encode(), nil
}

// accept verifies an answer, uses it up, and returns the query that leads to it.
func (sp *serviceProvider) accept(ctx context.Context, response string) (url.Values, error) {
	select {
	case sp.slots <- struct{}{}:
		defer func() { <-sp.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	text, err := decodeResponse(response)
	if err != nil {
		return nil, err
	}
	found, err := sp.verify(ctx, text)
	if err != nil {
		return nil, err
	}
	p, err := sp.person(found)
	if err != nil {
		return nil, err
	}
	saved, _ := json.Marshal(savedAnswer{ // texts always encode
		Request: found.request, UID: p.uid, Username: p.username, Name: p.name, Email: p.email, EmailVerified: p.emailVerified, Groups: p.groups,
	})
	now, reference := sp.now(), secret.Token("")
	err = sp.db.Tx(ctx, func(tx *db.Tx) error {
		fresh, err := saveUse(ctx, tx, secret.Digest("saml\n"+sp.Name+"\n"+found.id), found.until)
		if err != nil {
			return err
		}
		if !fresh {
			return errReplayed
		}
		return saveAnswer(ctx, tx, secret.Digest(reference), sp.Name, string(saved), now.Add(answerLife))
	})
	if err != nil {
		return nil, err
	}
	return url.Values{"state": {strings.TrimPrefix(found.request, "_")}, "answer": {reference}}, nil
}

// groupsLink is the attribute that Entra ID sends instead of the groups if the user is
// in too many.
const groupsLink = "http://schemas.microsoft.com/claims/groups.link"

var errReplayed = errors.New("the assertion was used before")

// exchange returns the answer that Accept has verified.
func (sp *serviceProvider) exchange(ctx context.Context, a *attempt, query url.Values) (*person, error) {
	text, err := takeAnswer(ctx, sp.db, secret.Digest(query.Get("answer")), sp.Name, sp.now())
	if errors.Is(err, db.ErrNoRows) {
		return nil, errors.New("there is no such answer, or it has expired")
	}
	if err != nil {
		return nil, err
	}
	var saved savedAnswer
	if err := json.Unmarshal([]byte(text), &saved); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if !secret.Equal(saved.Request, requestID(a.State)) {
		return nil, errors.New("the answer is to another request")
	}
	return &person{
		uid: saved.UID, username: saved.Username, name: saved.Name, email: saved.Email, emailVerified: saved.EmailVerified, groups: saved.Groups,
	}, nil
}

// person reads an assertion.
func (sp *serviceProvider) person(found *assertion) (*person, error) {
	text := func(name string) string {
		if values := found.values(name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	p := &person{
		uid: found.nameID, username: text(sp.UsernameAttribute), name: text(sp.NameAttribute), email: text(sp.EmailAttribute), emailVerified: sp.TrustEmail,
	}
	switch {
	case sp.IDAttribute != "":
		values := found.values(sp.IDAttribute)
		if len(values) != 1 {
			return nil, fmt.Errorf("the attribute %s, which has the identity, has %d values instead of one", sp.IDAttribute, len(values))
		}
		p.uid = values[0]
	case found.nameIDFormat == string(saml.TransientNameIDFormat):
		return nil, errors.New("the name ID is transient, which identifies no one at the next sign-in: change its format at the provider, or set id_attribute")
	}
	if p.uid == "" || len(p.uid) > maxUID || strings.ContainsRune(p.uid, 0) {
		return nil, errors.New("the identity is empty or too long")
	}
	if len(sp.RequiredGroups)+len(sp.AdminGroups)+len(sp.AuditorGroups)+len(sp.GroupSync) == 0 {
		return p, nil
	}
	p.groups = slices.Clone(found.values(sp.GroupsAttribute))
	if len(p.groups) == 0 && len(found.values(groupsLink)) > 0 {
		return nil, errMoreGroups
	}
	if len(p.groups) > maxGroups {
		return nil, fmt.Errorf("attribute %s: it has more than %d groups", sp.GroupsAttribute, maxGroups)
	}
	return p, nil
}
