package signin

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
)

// errSignature means that no key of the provider verifies a signature.
var errSignature = errors.New("the signature is not of a key of the provider")

// Algorithms of signatures. SHA-1 is not one of them.
var (
	signatureMethods = []string{dsig.RSASHA256SignatureMethod, dsig.RSASHA384SignatureMethod, dsig.RSASHA512SignatureMethod}
	digestMethods    = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384", "http://www.w3.org/2001/04/xmlenc#sha512",
	}
	transforms = []string{string(dsig.EnvelopedSignatureAltorithmId), string(dsig.CanonicalXML10ExclusiveAlgorithmId)}
)

// verifySignature verifies the signature of an element and returns the element as it
// was signed; nil if it has no signature. errSignature.
func (at *identityProvider) verifySignature(el *etree.Element, now time.Time) (*etree.Element, error) {
	signature, err := child(el, dsig.Namespace, dsig.SignatureTag)
	if signature == nil || err != nil {
		return nil, err
	}
	if err := checkSignature(signature, el.SelectAttrValue("ID", "")); err != nil {
		return nil, err
	}
	alone := detach(el)
	// The signature may name a certificate, but only those of the metadata are trusted.
	// The signature is not part of what it signs, and is moved to the front so that it is
	// found soon among many elements.
	signature, _ = child(alone, dsig.Namespace, dsig.SignatureTag)
	for _, info := range children(signature, dsig.Namespace, dsig.KeyInfoTag) {
		signature.RemoveChild(info)
	}
	alone.RemoveChild(signature)
	alone.InsertChildAt(0, signature)
	var fault error
	for _, cert := range at.certificates {
		check := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{cert}})
		check.Clock = dsig.NewFakeClockAt(now)
		signed, err := check.Validate(alone)
		if err == nil && (signed.Tag != el.Tag || signed.NamespaceURI() != el.NamespaceURI() || signed.SelectAttrValue("ID", "") != el.SelectAttrValue("ID", "")) {
			return nil, errors.New("the signature is about another element")
		}
		if err == nil {
			return signed, nil
		}
		fault = err
	}
	return nil, fmt.Errorf("%w: %s", errSignature, clip(fault.Error()))
}

// checkSignature accepts the form of signatures that providers use: one reference, to
// the element with the ID that the signature is in.
func checkSignature(signature *etree.Element, id string) error {
	get := func(el *etree.Element, tags ...string) *etree.Element {
		for _, tag := range tags {
			if el == nil {
				return nil
			}
			if list := children(el, dsig.Namespace, tag); len(list) == 1 {
				el = list[0]
			} else {
				return nil
			}
		}
		return el
	}
	algorithm := func(el *etree.Element) string {
		if el == nil {
			return ""
		}
		return el.SelectAttrValue(dsig.AlgorithmAttr, "")
	}
	info := get(signature, dsig.SignedInfoTag)
	reference := get(info, dsig.ReferenceTag)
	if info == nil || reference == nil || len(info.ChildElements()) != 3 || len(reference.ChildElements()) != 3 || len(children(signature, dsig.Namespace, "Object")) > 0 {
		return errors.New("the signature has not one reference")
	}
	if id == "" || reference.SelectAttrValue(dsig.URIAttr, "") != "#"+id {
		return errors.New("the signature is about another element")
	}
	if method := algorithm(get(info, dsig.SignatureMethodTag)); !slices.Contains(signatureMethods, method) {
		return fmt.Errorf("the signature has the algorithm %q, which is not accepted", clip(method))
	}
	if method := algorithm(get(reference, dsig.DigestMethodTag)); !slices.Contains(digestMethods, method) {
		return fmt.Errorf("the signature has the digest algorithm %q, which is not accepted", clip(method))
	}
	if method := algorithm(get(info, dsig.CanonicalizationMethodTag)); method != string(dsig.CanonicalXML10ExclusiveAlgorithmId) {
		return fmt.Errorf("the signature has the canonicalization %q, which is not accepted", clip(method))
	}
	list := get(reference, dsig.TransformsTag)
	if list == nil || len(list.ChildElements()) != len(transforms) {
		return errors.New("the signature has not the usual transforms")
	}
	for i, t := range list.ChildElements() {
		if algorithm(t) != transforms[i] || len(t.FindElements(".//*")) > 1 {
			return fmt.Errorf("the signature has the transform %q, which is not accepted", clip(algorithm(t)))
		}
	}
	return nil
}

// detach copies an element with the namespaces that it inherits.
func detach(el *etree.Element) *etree.Element {
	alone := el.Copy()
	known := make(map[string]bool)
	for _, a := range el.Attr {
		known[a.FullKey()] = true
	}
	for up := el.Parent(); up != nil; up = up.Parent() {
		for _, a := range up.Attr {
			if (a.Space == "xmlns" || a.Space == "" && a.Key == "xmlns") && !known[a.FullKey()] {
				known[a.FullKey()] = true
				alone.CreateAttr(a.FullKey(), a.Value)
			}
		}
	}
	return alone
}
