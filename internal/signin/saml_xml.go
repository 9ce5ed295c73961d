package signin

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
	roundtrip "github.com/mattermost/xml-roundtrip-validator"
	dsig "github.com/russellhaering/goxmldsig"
)

func decodeResponse(text string) ([]byte, error) {
	switch {
	case text == "":
		return nil, errors.New("the form has no SAMLResponse")
	case len(text) > MaxSAMLResponse:
		return nil, errors.New("the answer is too large")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("the answer is not in base64")
	}
	return raw, nil
}

// parseXML parses a document that can be read in one way only. It refuses content that
// signatures leave out or that parsers read differently, and documents that are too large.
func parseXML(text []byte) (*etree.Element, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the XML is not in UTF-8")
	}
	// XML allows these characters only at the start of markup.
	if bytes.Contains(text, []byte("<!")) {
		return nil, errors.New("the XML has a document type, a comment or a CDATA section")
	}
	if bytes.Contains(bytes.TrimPrefix(text, []byte("<?xml ")), []byte("<?")) {
		return nil, errors.New("the XML has a processing instruction")
	}
	if err := scanXML(text); err != nil {
		return nil, err
	}
	if err := roundtrip.Validate(bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("the XML can be read in several ways: %s", clip(err.Error()))
	}
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(text); err != nil {
		return nil, fmt.Errorf("the XML cannot be read: %s", clip(err.Error()))
	}
	root := doc.Root()
	if root == nil {
		return nil, errors.New("the XML has no element")
	}
	return root, nil
}

// scanXML checks the bounds of a document.
func scanXML(text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	depth, elements, roots := 0, 0, 0
	prefixes := make(map[string]bool)
	for {
		token, err := d.Token()
		if err == io.EOF {
			if roots != 1 {
				return errors.New("the XML has not one element")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the XML cannot be read: %s", clip(err.Error()))
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth, elements = depth+1, elements+1
			if depth > maxDepth || elements > maxElements || len(t.Attr) > maxAttributes {
				return errors.New("the XML is too large or too deep")
			}
			seen := make(map[xml.Name]bool, len(t.Attr))
			for _, a := range t.Attr {
				if seen[a.Name] {
					return errors.New("the XML has an attribute twice")
				}
				seen[a.Name] = true
				if a.Name.Space == "xmlns" {
					prefixes[a.Name.Local] = true
				}
			}
			if len(prefixes) > maxPrefixes {
				return errors.New("the XML has too many namespaces")
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errors.New("the XML has text outside of its element")
			}
		}
	}
}

func is(el *etree.Element, space, tag string) bool {
	return el.Tag == tag && el.NamespaceURI() == space
}

// children returns the elements directly below an element that have a name.
func children(el *etree.Element, space, tag string) []*etree.Element {
	var list []*etree.Element
	for _, c := range el.ChildElements() {
		if is(c, space, tag) {
			list = append(list, c)
		}
	}
	return list
}

// child returns the only element of a name; nil if there is none.
func child(el *etree.Element, space, tag string) (*etree.Element, error) {
	list := children(el, space, tag)
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	return nil, fmt.Errorf("there are several elements %s in %s", tag, el.Tag)
}

// textOf returns the text of an element that has no other content; otherwise nothing.
func textOf(el *etree.Element) string {
	if el == nil || len(el.ChildElements()) > 0 {
		return ""
	}
	return strings.TrimSpace(el.Text())
}

// checkShape refuses a document in which a signature could be about something else
// than what is read: every assertion is where it is read, every signature in what it
// signs, and every ID there once.
func checkShape(root *etree.Element) error {
	assertions := 0
	ids := make(map[string]bool)
	var walk func(el *etree.Element) error
	walk = func(el *etree.Element) error {
		parent := el.Parent()
		switch {
		case is(el, nsAssertion, "Assertion"), is(el, nsAssertion, "EncryptedAssertion"):
			if assertions++; el != root && parent != root {
				return errors.New("an assertion is not where it belongs")
			}
		case is(el, nsProtocol, "Response"):
			if el != root {
				return errors.New("a response is in another element")
			}
		case is(el, dsig.Namespace, dsig.SignatureTag):
			if !is(parent, nsProtocol, "Response") && !is(parent, nsAssertion, "Assertion") {
				return errors.New("a signature is not where it belongs")
			}
		}
		for _, a := range el.Attr {
			if !strings.EqualFold(a.Key, "id") {
				continue
			}
			if ids[a.Value] {
				return errors.New("an ID is there twice")
			}
			ids[a.Value] = true
		}
		for _, c := range el.ChildElements() {
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(root); err != nil {
		return err
	}
	if assertions > 1 {
		return errors.New("there are several assertions")
	}
	return nil
}
