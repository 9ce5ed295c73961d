package web_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/setting"
)

// hostileAnswers must not create a session. Each has the reason that is logged.
func hostileAnswers(t *testing.T, f *samlForger) map[string]func(*forged) {
	other := keyPair(t)
	later := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	// evil is an unsigned assertion about another user.
	evil := func(root *etree.Element) *etree.Element {
		e := root.FindElement("./Assertion").Copy()
		if s := e.FindElement("./Signature"); s != nil {
			e.RemoveChild(s)
		}
		e.FindElement(".//NameID").SetText("root")
		return e
	}
	return map[string]func(*forged){
		"neither the response nor the assertion is signed": func(a *forged) { a.signAssertion = false },
		"signature is not of a key of the provider":        func(a *forged) { a.key = other },
		"response: the signature is not of a key":          func(a *forged) { a.key, a.signAssertion, a.signResponse = other, false, true },
		"assertion: the signature is not of a key":         sent(">u1<", ">root<"),
		"xmldsig#rsa-sha1":                                 func(a *forged) { a.method = dsig.RSASHA1SignatureMethod },
		"is not accepted":                                  sent("http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2000/09/xmldsig#sha1"),
		"transform":                                        sent(string(dsig.EnvelopedSignatureAltorithmId), "http://www.w3.org/TR/1999/REC-xslt-19991116"),
		"canonicalization":                                 sent(`CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"`, `CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#WithComments"`),
		"the audience is not":                              set("audience", "https://other.example"),
		"it names no audience":                             unsigned("<saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction>", ""),
		"it has no conditions": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:Conditions.*</saml:Conditions>`).ReplaceAllString(a.assertion, "")
		},
		"which is not known": unsigned("<saml:AudienceRestriction>", "<saml:Condition/><saml:AudienceRestriction>"),
		"the recipient is":   set("recipient", "https://other.example/acs"),
		"the destination is": set("destination", "https://other.example/acs"),
		"the destination is \\\"\\\"": func(a *forged) {
			a.signResponse = true
			a.response = strings.Replace(a.response, `Destination="{destination}" `, "", 1)
		},
		"the provider does not list all groups": unsigned(`<saml:Attribute Name="groups">{groups}</saml:Attribute>`,
			`<saml:Attribute Name="http://schemas.microsoft.com/claims/groups.link"><saml:AttributeValue>https://graph.example</saml:AttributeValue></saml:Attribute>`),
		"another issuer": set("issuer", "https://other.example"),
		"assertion: it comes from another issuer": unsigned("<saml:Issuer>{issuer}", "<saml:Issuer>https://other.example"),
		"assertion: it has expired":               set("until", later(-3*time.Minute)),
		"assertion: it is not valid before":       set("from", later(3*time.Minute)),
		"in the future":                           set("now", later(time.Hour)),
		"is not a time":                           set("until", "soon"),
		"the subject confirmation has no end":     unsigned(` NotOnOrAfter="{until}" InResponseTo`, " InResponseTo"),
		"no subject confirmation for a browser":   unsigned("cm:bearer", "cm:holder-of-key"),
		"the subject confirmation has no data": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:SubjectConfirmationData[^>]*/>`).ReplaceAllString(a.assertion, "")
		},
		"it has no subject": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:Subject>.*</saml:Subject>`).ReplaceAllString(a.assertion, "")
		},
		"does not say that the user was authenticated": unsigned(`<saml:AuthnStatement AuthnInstant="{now}"/>`, ""),
		"the session at the provider has ended":        unsigned(`AuthnInstant="{now}"`, `AuthnInstant="{now}" SessionNotOnOrAfter="`+later(-time.Hour)+`"`),
		"the state does not match":                     set("request", "_other"),
		"sign-in has to start here":                    set("request", ""),
		"answer different requests":                    func(a *forged) { a.response = strings.Replace(a.response, "{request}", "_other", 1) },
		"status:Responder":                             set("status", "urn:oasis:names:tc:SAML:2.0:status:Responder"),
		"is transient":                                 set("format", transientID),
		"the identity is empty":                        set("name", ""),
		"is empty or too long":                         set("name", strings.Repeat("n", 256)),
		"a comment or a CDATA section":                 sent(">u1<", ">u1<!-- x --><"),
		"has a document type":                          func(a *forged) { a.after = func(text string) string { return `<!DOCTYPE r [<!ENTITY a "b">]>` + text } },
		"has a processing instruction":                 sent(">u1<", "><?x y?>u1<"),
		"the XML has a document type, a comment": func(a *forged) { // the signature is valid
			a.replace["name"] = "root.evil"
			a.after = func(text string) string { return strings.Replace(text, ">root.evil<", ">root<!-- -->.evil<", 1) }
		},
		"the XML cannot be read": sent("<saml:Subject>", "<saml:Subject>&bomb;"),
		"too large or too deep":  sent("<samlp:Status>", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)+"<samlp:Status>"),
		"the XML is too large":   sent("<samlp:Status>", strings.Repeat("<a/>", 30000)+"<samlp:Status>"),
		"too many namespaces": func(a *forged) {
			a.after = func(text string) string {
				return strings.Replace(text, "<samlp:Status>", manyPrefixes()+"<samlp:Status>", 1)
			}
		},
		"an attribute twice":            sent(`Version="2.0"`, `Version="2.0" Version="2.0"`),
		"the answer is too large":       sent("<samlp:Status>", strings.Repeat(" ", 600<<10)+"<samlp:Status>"),
		"not a SAML response":           func(a *forged) { a.response = strings.ReplaceAll(a.response, "samlp:Response", "samlp:LogoutResponse") },
		"the response has no assertion": func(a *forged) { a.response, a.signResponse = strings.Replace(a.response, "{assertion}", "", 1), true },
		"no key_file is configured": func(a *forged) {
			a.response, a.signResponse = strings.Replace(a.response, "{assertion}", "<saml:EncryptedAssertion/>", 1), true
		},
		"does not give an email":      set("email", ""),
		"none of the required groups": set("groups", "<saml:AttributeValue>guests</saml:AttributeValue>"),

		// Signature wrapping: the signed assertion is moved, and another one is
		// read.
		"there are several assertions": func(a *forged) {
			a.tree = func(root *etree.Element) {
				e := evil(root)
				e.CreateAttr("ID", "_evil")
				root.InsertChildAt(0, e)
			}
		},
		"an ID is there twice": func(a *forged) {
			a.tree = func(root *etree.Element) { root.InsertChildAt(0, evil(root)) }
		},
		"an assertion is not where it belongs": func(a *forged) {
			a.tree = func(root *etree.Element) {
				good, e := root.FindElement("./Assertion"), evil(root)
				e.CreateAttr("ID", "_evil")
				root.RemoveChild(good)
				e.CreateElement("saml:Advice").AddChild(good)
				root.AddChild(e)
			}
		},
		"a signature is not where it belongs": func(a *forged) {
			a.tree = func(root *etree.Element) {
				good := root.FindElement("./Assertion")
				s := good.FindElement("./Signature")
				good.RemoveChild(s)
				good.FindElement("./Subject").AddChild(s)
			}
		},
		"the signature is about another element": func(a *forged) {
			// The signature of the assertion that is hidden in it is in another one.
			a.tree = func(root *etree.Element) {
				good := root.FindElement("./Assertion")
				e, s := evil(root), good.FindElement("./Signature")
				e.CreateAttr("ID", "_evil")
				root.RemoveChild(good)
				good.RemoveChild(s)
				good.Tag = "Hidden"
				s.CreateElement("ds:Hidden").AddChild(good)
				e.AddChild(s)
				root.AddChild(e)
			}
		},
		"the signature has not one reference": func(a *forged) {
			a.tree = func(root *etree.Element) {
				info := root.FindElement("./Assertion/Signature/SignedInfo")
				info.AddChild(info.FindElement("./Reference").Copy())
			}
		},
		"a response is in another element": func(a *forged) {
			a.signResponse = true
			a.tree = func(root *etree.Element) {
				inner := root.Copy()
				root.CreateAttr("ID", "_evil")
				root.FindElement("./Assertion/Subject/NameID").SetText("root")
				root.CreateElement("samlp:Extensions").AddChild(inner)
			}
		},
	}
}

func manyPrefixes() string {
	var text strings.Builder
	for i := range 120 {
		fmt.Fprintf(&text, `<a xmlns:p%d="u"/>`, i)
	}
	return text.String()
}

// TestHostileSAML checks responses that must not create a session.
func TestHostileSAML(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		one, two := startForger(t), startForger(t)
		first, second := samlProvider("one", one.URL), samlProvider("two", two.URL)
		first.RequiredGroups = []string{"staff"}
		s := apptest.Start(t, src, withProviders(first, second)...)
		if _, err := s.Settings.Update(t.Context(), actor.System(), func(s *setting.Settings) { s.FailedPasswordsPerMinute = 0 }); err != nil {
			t.Fatal(err)
		}
		for reason, change := range hostileAnswers(t, one) {
			was := strings.Count(s.Log(), reason)
			b := forgeBrowser(t, s)
			b.refused(one.enter(b, "one", change), s, reason)
			if strings.Count(s.Log(), reason) == was {
				t.Errorf("%s: the log has no new reason: %s", reason, lastLine(s.Log()))
			}
		}
		for _, uid := range []string{"u1", "root"} {
			if _, err := s.Users.FindIdentity(t.Context(), "one", uid); err == nil {
				t.Fatalf("an account was created for %s", uid)
			}
		}
		b := forgeBrowser(t, s)
		for _, text := range []string{"", "%%%", base64.StdEncoding.EncodeToString([]byte("<")), base64.StdEncoding.EncodeToString([]byte{0xff, 0xfe, '<'})} {
			b.samlRequest("one")
			b.refused(b.acs("one", text), s, "sign-in refused")
		}
		b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {strings.Repeat("A", 2<<20)}}).want(413)
		b.fromElsewhere("/users/auth/none/callback", url.Values{}).want(404)
		b.get("/users/auth/none/metadata").want(404)
		testSAMLAttempts(t, s, one, two)
	})
}

func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "WARN") })
	return strings.Join(lines[max(len(lines)-2, 0):], "\n")
}

// testSAMLAttempts checks that a response is bound to a browser, a provider and a
// request, and works once.
func testSAMLAttempts(t *testing.T, s *apptest.Server, one, two *samlForger) {
	b, eve := forgeBrowser(t, s), forgeBrowser(t, s)
	request, query := b.samlRequest("one")
	if request.Issuer.Value != forge+"/users/auth/one/metadata" || request.Destination != one.URL+"/sso?realm=a" || query.Get("realm") != "a" ||
		request.AssertionConsumerServiceURL != forge+"/users/auth/one/callback" || *request.NameIDPolicy.Format != persistentID || query.Has("Signature") || query.Has("RelayState") {
		t.Errorf("the request is %+v, %v", request, query)
	}
	good := one.answerTo("one", request.ID)
	text := good.text(t)
	form := url.Values{"SAMLResponse": {text}}
	to := eve.fromElsewhere("/users/auth/one/callback", form).header.Get("Location")
	eve.refused(eve.get(to), s, "the browser has no attempt to sign in") // sign-in CSRF
	b.refused(b.acs("one", text), s, "the assertion was used before")

	// An attempt in the browser of the victim does not change that.
	request, _ = eve.samlRequest("one")
	stolen := one.answerTo("one", request.ID).text(t)
	b.samlRequest("one")
	b.refused(b.acs("one", stolen), s, "the state does not match")

	// A reference works once, for its provider, and for a short time.
	request, _ = b.samlRequest("one")
	to = b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	b.get(to).leads("/explore")
	b.submit("/", "/users/sign_out").leads("/users/sign_in")
	b.refused(b.get(to), s, "the browser has no attempt to sign in")
	again, _ := b.samlRequest("one")
	state := strings.TrimPrefix(again.ID, "_")
	b.refused(b.get("/users/auth/one/callback?state="+state+"&answer=none"), s, "there is no such answer, or it has expired")
	request, _ = b.samlRequest("one")
	to = b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	s.Clock.Move(3 * time.Minute)
	b.refused(b.get(to), s, "there is no such answer, or it has expired")
	s.Clock.Move(-3 * time.Minute)

	// The reference of another response with the state of this attempt.
	request, _ = eve.samlRequest("one")
	to = eve.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	mine, _ := b.samlRequest("one")
	b.refused(b.get("/users/auth/one/callback?state="+strings.TrimPrefix(mine.ID, "_")+"&answer="+at.Query().Get("answer")), s, "the answer is to another request")

	// A provider cannot answer for another one.
	request, _ = b.samlRequest("two")
	b.refused(b.acs("two", one.answerTo("two", request.ID).text(t)), s, "another issuer")
	b.samlRequest("two")
	posing := one.answerTo("two", request.ID)
	posing.replace["issuer"] = two.URL + "/idp"
	b.refused(b.acs("two", posing.text(t)), s, "the signature is not of a key of the provider")
	late, _ := b.samlRequest("one")
	s.Clock.Move(16 * time.Minute)
	after := one.answerTo("one", late.ID)
	for key, d := range map[string]time.Duration{"now": 0, "until": 5 * time.Minute} {
		after.replace[key] = s.Clock.Now().Add(d).UTC().Format(time.RFC3339)
	}
	b.refused(b.acs("one", after.text(t)), s, "the attempt has expired")
	s.Clock.Move(-16 * time.Minute)

	// Every valid form of a response redirects to the page of the attempt.
	for _, change := range []func(*forged){
		nil,
		func(a *forged) { a.signResponse = true },
		func(a *forged) { a.signResponse, a.signAssertion = true, false },
		func(a *forged) { a.method = dsig.RSASHA512SignatureMethod },
		func(a *forged) {
			a.after = func(text string) string { return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + text }
		},
		set("groups", strings.Repeat("<saml:AttributeValue>other</saml:AttributeValue>", 3000)+"<saml:AttributeValue>staff</saml:AttributeValue>"),
		func(a *forged) { // only the response declares the namespace
			a.signAssertion, a.signResponse = false, true
			a.assertion = strings.Replace(a.assertion, ` xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"`, "", 1)
			a.response = strings.Replace(a.response, "<samlp:Status>", "\n  <samlp:Status>", 1)
		},
	} {
		c := forgeBrowser(t, s)
		c.samlEnters(one.enter(c, "one", change), s)
	}
	if strings.Contains(s.Log(), state) || strings.Contains(s.Log(), stolen) {
		t.Error("the log has secrets")
	}
}

func (b *browser) samlEnters(p answer, s *apptest.Server) {
	b.t.Helper()
	if p.header.Get("Location") != "/explore" {
		b.t.Errorf("the answer leads to %s: %s", p.header.Get("Location"), lastLine(s.Log()))
	}
	b.get("/api/v4/user").want(200, `"username":"bob"`)
}
