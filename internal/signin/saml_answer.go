package signin

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
)

const (
	nsAssertion = "urn:oasis:names:tc:SAML:2.0:assertion"
	nsProtocol  = "urn:oasis:names:tc:SAML:2.0:protocol"
	bearer      = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

	// clockSkew is how far the clocks of the two sides may differ.
	clockSkew = 2 * time.Minute
	// maxUse is the longest time that the ID of an assertion is remembered. The request
	// that it answers expires long before.
	maxUse = 24 * time.Hour

	// Bounds of a document. MaxSAMLResponse is of its base64 form.
	MaxSAMLResponse = 700 << 10
	maxElements     = 10_000
	maxDepth        = 32
	maxAttributes   = 24 // of an element
	maxPrefixes     = 32 // that a document declares
)

// assertion is what is used of a verified answer.
type assertion struct {
	id           string
	request      string // that it answers
	until        time.Time
	nameID       string
	nameIDFormat string
	attributes   []attribute
}

type attribute struct {
	name, friendly string
	values         []string
}

// values returns the values of the attribute with a name or, if there is none, with a
// friendly name.
func (a *assertion) values(name string) []string {
	if name == "" {
		return nil
	}
	var values []string
	found := false
	for _, at := range a.attributes {
		if at.name == name {
			values, found = append(values, at.values...), true
		}
	}
	if found {
		return values
	}
	for _, at := range a.attributes {
		if at.friendly == name {
			values = append(values, at.values...)
		}
	}
	return values
}

// verify checks an answer. If no key verifies its signature, the provider may have
// new ones.
func (sp *serviceProvider) verify(ctx context.Context, text []byte) (*assertion, error) {
	at, err := sp.discover(ctx, rediscover)
	if err != nil {
		return nil, err
	}
	found, err := sp.verifyWith(at, text)
	if !errors.Is(err, errSignature) || sp.MetadataURL == "" {
		return found, err
	}
	fresh, fault := sp.discover(ctx, refreshKeys)
	if fault != nil || fresh == at {
		return nil, err
	}
	return sp.verifyWith(fresh, text)
}

// verifyWith checks an answer of an identity provider. What it returns was read from
// the bytes that a signature covers.
func (sp *serviceProvider) verifyWith(at *identityProvider, text []byte) (*assertion, error) {
	response, err := parseXML(text)
	if err != nil {
		return nil, err
	}
	if !is(response, nsProtocol, "Response") {
		return nil, errors.New("the answer is not a SAML response")
	}
	if err := checkShape(response); err != nil {
		return nil, err
	}
	now := sp.now()
	signed, err := at.verifySignature(response, now)
	if err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	if signed != nil {
		response = signed
	}
	if err := sp.checkResponse(at, response, signed != nil, now); err != nil {
		return nil, err
	}
	el, err := sp.assertionOf(response)
	if err != nil {
		return nil, err
	}
	inner, err := at.verifySignature(el, now)
	if err != nil {
		return nil, fmt.Errorf("assertion: %w", err)
	}
	switch {
	case inner != nil:
		el = inner
	case signed == nil:
		return nil, errors.New("neither the response nor the assertion is signed")
	}
	found, err := sp.readAssertion(at, el, now)
	if err != nil {
		return nil, fmt.Errorf("assertion: %w", err)
	}
	if found.request != response.SelectAttrValue("InResponseTo", "") {
		return nil, errors.New("the response and the assertion answer different requests")
	}
	return found, nil
}

// assertionOf returns the assertion of a response, which may be encrypted.
func (sp *serviceProvider) assertionOf(response *etree.Element) (*etree.Element, error) {
	el, err := child(response, nsAssertion, "Assertion")
	if err != nil || el != nil {
		return el, err
	}
	sealed, err := child(response, nsAssertion, "EncryptedAssertion")
	if err != nil {
		return nil, err
	}
	if sealed == nil {
		return nil, errors.New("the response has no assertion")
	}
	if sp.KeyPair == nil {
		return nil, errors.New("the assertion is encrypted, and no key_file is configured")
	}
	key, ok := sp.KeyPair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the assertion is encrypted, and the key is not an RSA key")
	}
	text, err := decrypt(key, sealed)
	if err != nil {
		return nil, err
	}
	if el, err = parseXML(text); err != nil {
		return nil, fmt.Errorf("encrypted assertion: %w", err)
	}
	if !is(el, nsAssertion, "Assertion") {
		return nil, errors.New("the encrypted element is not an assertion")
	}
	return el, checkShape(el)
}

// checkResponse checks what surrounds the assertion.
func (sp *serviceProvider) checkResponse(at *identityProvider, response *etree.Element, signed bool, now time.Time) error {
	if v := response.SelectAttrValue("Version", ""); v != "2.0" {
		return fmt.Errorf("the response has the version %q", clip(v))
	}
	destination := response.SelectAttrValue("Destination", "")
	if destination != sp.acs && (signed || destination != "") {
		return fmt.Errorf("the destination is %q instead of %s", clip(destination), sp.acs)
	}
	issuer, err := child(response, nsAssertion, "Issuer")
	if err != nil {
		return err
	}
	if issuer != nil && textOf(issuer) != at.entityID {
		return fmt.Errorf("the response comes from another issuer: %q", clip(textOf(issuer)))
	}
	issued, err := timeOf(response, "IssueInstant")
	if err != nil || issued.IsZero() || issued.After(now.Add(clockSkew)) {
		return errors.New("the response has no time, or one in the future")
	}
	status, err := child(response, nsProtocol, "Status")
	if err != nil || status == nil {
		return errors.New("the response has no status")
	}
	var codes []string
	for el := status; el != nil; {
		if el, err = child(el, nsProtocol, "StatusCode"); err != nil {
			return err
		}
		if el != nil {
			codes = append(codes, el.SelectAttrValue("Value", ""))
		}
	}
	if len(codes) == 0 || codes[0] != saml.StatusSuccess {
		return fmt.Errorf("the provider answers with the status %q", clip(strings.Join(codes, " ")))
	}
	return nil
}

// timeOf returns the time in an attribute; zero if it is not there.
func timeOf(el *etree.Element, key string) (time.Time, error) {
	var t saml.RelaxedTime
	if err := t.UnmarshalText([]byte(el.SelectAttrValue(key, ""))); err != nil {
		return time.Time{}, fmt.Errorf("%s is not a time", key)
	}
	return time.Time(t), nil
}

// checkTimes checks NotBefore and NotOnOrAfter, and returns the latter.
func checkTimes(el *etree.Element, now time.Time) (time.Time, error) {
	from, err := timeOf(el, "NotBefore")
	if err != nil {
		return time.Time{}, err
	}
	until, err := timeOf(el, "NotOnOrAfter")
	if err != nil {
		return time.Time{}, err
	}
	if now.Add(clockSkew).Before(from) {
		return until, fmt.Errorf("it is not valid before %s", from.UTC().Format(time.RFC3339))
	}
	if !until.IsZero() && !now.Add(-clockSkew).Before(until) {
		return until, fmt.Errorf("it has expired at %s", until.UTC().Format(time.RFC3339))
	}
	return until, nil
}

// readAssertion checks an assertion whose signature was verified, and reads it.
func (sp *serviceProvider) readAssertion(at *identityProvider, el *etree.Element, now time.Time) (*assertion, error) {
	found := &assertion{id: el.SelectAttrValue("ID", "")}
	if found.id == "" || el.SelectAttrValue("Version", "") != "2.0" {
		return nil, errors.New("it has no ID, or not the version 2.0")
	}
	issuer, err := child(el, nsAssertion, "Issuer")
	if err != nil {
		return nil, err
	}
	if textOf(issuer) != at.entityID {
		return nil, fmt.Errorf("it comes from another issuer: %q", clip(textOf(issuer)))
	}
	if err := sp.checkConditions(el, now); err != nil {
		return nil, err
	}
	statements := children(el, nsAssertion, "AuthnStatement")
	if len(statements) == 0 {
		return nil, errors.New("it does not say that the user was authenticated")
	}
	for _, s := range statements {
		if until, err := timeOf(s, "SessionNotOnOrAfter"); err != nil || !until.IsZero() && !now.Add(-clockSkew).Before(until) {
			return nil, errors.New("the session at the provider has ended")
		}
	}
	if err := sp.readSubject(el, found, now); err != nil {
		return nil, err
	}
	for _, list := range children(el, nsAssertion, "AttributeStatement") {
		if len(children(list, nsAssertion, "EncryptedAttribute")) > 0 {
			return nil, errors.New("it has encrypted attributes, which are not supported")
		}
		for _, a := range children(list, nsAssertion, "Attribute") {
			one := attribute{name: a.SelectAttrValue("Name", ""), friendly: a.SelectAttrValue("FriendlyName", "")}
			for _, v := range children(a, nsAssertion, "AttributeValue") {
				if text := textOf(v); text != "" {
					one.values = append(one.values, text)
				}
			}
			found.attributes = append(found.attributes, one)
		}
	}
	return found, nil
}

// checkConditions checks the times and the audience of an assertion.
func (sp *serviceProvider) checkConditions(el *etree.Element, now time.Time) error {
	conditions, err := child(el, nsAssertion, "Conditions")
	if err != nil {
		return err
	}
	if conditions == nil {
		return errors.New("it has no conditions")
	}
	if _, err := checkTimes(conditions, now); err != nil {
		return err
	}
	audiences := 0
	for _, c := range conditions.ChildElements() {
		switch {
		case is(c, nsAssertion, "AudienceRestriction"):
			audiences++
			if !slices.ContainsFunc(children(c, nsAssertion, "Audience"), func(a *etree.Element) bool { return textOf(a) == sp.EntityID }) {
				return fmt.Errorf("the audience is not %s", sp.EntityID)
			}
		case is(c, nsAssertion, "OneTimeUse"), is(c, nsAssertion, "ProxyRestriction"):
		default:
			return fmt.Errorf("it has the condition %q, which is not known", clip(c.Tag))
		}
	}
	if audiences == 0 {
		return errors.New("it names no audience")
	}
	return nil
}

// readSubject reads who the assertion is about, and checks that it may be used here,
// now and for a request.
func (sp *serviceProvider) readSubject(el *etree.Element, found *assertion, now time.Time) error {
	subject, err := child(el, nsAssertion, "Subject")
	if err != nil {
		return err
	}
	if subject == nil {
		return errors.New("it has no subject")
	}
	if len(children(subject, nsAssertion, "EncryptedID")) > 0 {
		return errors.New("the name ID is encrypted, which is not supported")
	}
	name, err := child(subject, nsAssertion, "NameID")
	if err != nil {
		return err
	}
	if name != nil {
		found.nameID, found.nameIDFormat = textOf(name), name.SelectAttrValue("Format", "")
	}
	fault := errors.New("it has no subject confirmation for a browser")
	for _, c := range children(subject, nsAssertion, "SubjectConfirmation") {
		if c.SelectAttrValue("Method", "") != bearer {
			continue
		}
		if fault = sp.confirm(c, found, now); fault == nil {
			return nil
		}
	}
	return fault
}

func (sp *serviceProvider) confirm(c *etree.Element, found *assertion, now time.Time) error {
	data, err := child(c, nsAssertion, "SubjectConfirmationData")
	if err != nil {
		return err
	}
	if data == nil {
		return errors.New("the subject confirmation has no data")
	}
	if r := data.SelectAttrValue("Recipient", ""); r != sp.acs {
		return fmt.Errorf("the recipient is %q instead of %s", clip(r), sp.acs)
	}
	until, err := checkTimes(data, now)
	if err != nil {
		return err
	}
	if until.IsZero() {
		return errors.New("the subject confirmation has no end")
	}
	found.request = data.SelectAttrValue("InResponseTo", "")
	if !strings.HasPrefix(found.request, "_") || len(found.request) > maxUID {
		return errors.New("it answers no request: sign-in has to start here, not at the provider")
	}
	found.until = until.Add(clockSkew)
	if latest := now.Add(maxUse); found.until.After(latest) {
		found.until = latest
	}
	return nil
}
