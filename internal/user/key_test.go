package user

import (
	//lint:ignore SA1019 only to make a key of the kind that is refused
	"crypto/dsa"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Keys for all tests, generated once because generating RSA keys is slow.
var (
	ed25519Key = sync.OnceValue(func() string {
		k, _, err := ed25519.GenerateKey(rand.Reader)
		return authorized(k, err)
	})
	ecdsaKey = sync.OnceValue(func() string {
		k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		return authorized(&k.PublicKey, err)
	})
	rsa2048 = sync.OnceValue(func() string { return rsaKey(2048) })
	rsa1024 = sync.OnceValue(func() string { return rsaKey(1024) })
	dsaKey  = sync.OnceValue(func() string {
		k := &dsa.PrivateKey{}
		err := dsa.GenerateParameters(&k.Parameters, rand.Reader, dsa.L1024N160)
		if err == nil {
			err = dsa.GenerateKey(k, rand.Reader)
		}
		return authorized(&k.PublicKey, err)
	})
)

func rsaKey(bits int) string {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	return authorized(&k.PublicKey, err)
}

func authorized(key any, err error) string {
	if err != nil {
		panic(err)
	}
	public, err := ssh.NewPublicKey(key)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

// skKey returns a new public key of a hardware key type, encoded by hand.
func skKey(kind string) string {
	public, _, _ := ed25519.GenerateKey(rand.Reader)
	blob := ssh.Marshal(struct {
		Kind        string
		Key         []byte
		Application string
	}{kind, public, "ssh:"})
	return kind + " " + base64.StdEncoding.EncodeToString(blob)
}

// padded returns a different encoding of an RSA key: its exponent has leading zeros.
func padded(line string) string {
	var k struct {
		Kind string
		E, N []byte
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Fields(line)[1])
	if err == nil {
		err = ssh.Unmarshal(raw, &k)
	}
	if err != nil {
		panic(err)
	}
	k.E = append([]byte{0, 0}, k.E...)
	return k.Kind + " " + base64.StdEncoding.EncodeToString(ssh.Marshal(k))
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	const (
		malformed = "is invalid"
		forbidden = "type is forbidden. Must be RSA, ECDSA, ED25519, ECDSA_SK or ED25519_SK"
	)
	body := strings.Fields(ed25519Key())[1]
	for _, c := range []struct {
		name, text, line, problem string
	}{
		{"ed25519", ed25519Key(), ed25519Key(), ""},
		{"ecdsa", ecdsaKey(), ecdsaKey(), ""},
		{"rsa", rsa2048(), rsa2048(), ""},
		{"hardware key", skKey(ssh.KeyAlgoSKED25519), "", ""},
		{"comment kept", ed25519Key() + " Ada's  laptop", ed25519Key() + " Ada's  laptop", ""},
		{"space around", "  " + ed25519Key() + " \n", ed25519Key(), ""},
		{"space between", strings.Replace(ed25519Key(), " ", "   ", 1), ed25519Key(), ""},
		{"spelled otherwise", padded(rsa2048()), "", malformed},
		{"short rsa", rsa1024(), "", "must be at least 2048 bits"},
		{"dsa", dsaKey(), "", forbidden},
		{"empty", "", "", malformed},
		{"type alone", "ssh-ed25519", "", malformed},
		{"not base64", "ssh-ed25519 ***", "", malformed},
		{"other type in front", "ssh-rsa " + body, "", malformed},
		{"options", `command="sh" ` + ed25519Key(), "", malformed},
		{"two lines", ed25519Key() + "\n" + ecdsaKey(), "", malformed},
		{"carriage return", ed25519Key() + " a\rb", "", malformed},
		{"tab", strings.Replace(ed25519Key(), " ", "\t", 1), "", malformed},
		{"cut short", ed25519Key()[:len(ed25519Key())-8], "", malformed},
		{"more behind", "ssh-ed25519 " + body + "AAAA", "", malformed},
		{"line break in base64", "ssh-ed25519 " + body[:8] + "\n" + body[8:], "", malformed},
		{"not UTF-8", ed25519Key() + " \xff", "", malformed},
		{"too long", ed25519Key() + " " + strings.Repeat("x", 5000), "", malformed},
		{"private key", "-----BEGIN OPENSSH PRIVATE KEY-----", "", malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			line, key, problem := parseKey(c.text)
			if problem != c.problem || (key != nil) != (problem == "") {
				t.Fatalf("problem %q, want %q", problem, c.problem)
			}
			if c.line != "" && line != c.line {
				t.Errorf("line %q, want %q", line, c.line)
			}
		})
	}
}

func FuzzParseKey(f *testing.F) {
	for _, text := range []string{ed25519Key(), ecdsaKey() + " a comment", rsa2048(), dsaKey(), skKey(ssh.KeyAlgoSKED25519),
		`no-pty,command="x" ` + ed25519Key(), "# " + ed25519Key(), "ssh-rsa AAAA"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, key, problem := parseKey(text)
		if problem != "" {
			return
		}
		if strings.ContainsAny(line, "\r\n\x00") {
			t.Fatalf("a line of several: %q", line)
		}
		// Parsed as a line of authorized_keys, an accepted line must contain the same
		// key and nothing else.
		other, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil || len(options) > 0 || len(rest) > 0 || string(other.Marshal()) != string(key.Marshal()) {
			t.Fatalf("%q reads as %v, options %q, rest %q, error %v", line, other, options, rest, err)
		}
		again, _, problem := parseKey(line)
		if problem != "" || again != line {
			t.Fatalf("%q does not read as itself: %q, %q", line, again, problem)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		_, byBob := b.user("bob")
		_, byRoot := b.admin("boss")

		k, err := b.AddOwnKey(ctx, byAda, NewKey{Title: "laptop", Key: ed25519Key() + " ada@laptop"})
		b.ok(err)
		if k.Usage != AuthAndSigningKey || !strings.HasSuffix(k.Key, " ada@laptop") {
			b.t.Errorf("key %+v", k)
		}
		if e := b.event("add_ssh_key"); e.Entity.ID != ada.ID || e.Target.ID != k.ID || e.Target.Type != "Key" {
			b.t.Errorf("event %+v", e)
		}

		// Another user cannot add the key, even with a different comment.
		_, err = b.AddOwnKey(ctx, byBob, NewKey{Title: "mine", Key: ed25519Key() + " bob"})
		b.wrong(err, "fingerprint_sha256", "has already been taken")
		_, err = b.AddOwnKey(ctx, byAda, NewKey{Title: "old", Key: ecdsaKey(), ExpiresAt: ptr(b.Now())})
		b.wrong(err, "expires_at", "can't be in the past")
		_, err = b.AddKey(ctx, byBob, ada.ID, NewKey{Title: "mine", Key: ecdsaKey()})
		b.refused(err, errs.KindForbidden)
		_, err = b.AddKey(ctx, byRoot, ada.ID, NewKey{Title: "from above", Key: ecdsaKey(), ExpiresAt: ptr(b.Now().Add(time.Hour)), Usage: AuthKey})
		b.ok(err)

		// Keys are public, also for anonymous callers, but their comments are not.
		page, err := b.KeysOf(ctx, actor.Actor{}, "ADA", db.Paging{Limit: 10})
		b.ok(err)
		if len(page.Items) != 2 || page.Items[0].ID != k.ID || page.Items[0].Key != ed25519Key() {
			b.t.Errorf("keys %+v", page.Items)
		}
		for who, c := range map[string]struct {
			by   actor.Actor
			want string
		}{"the owner": {byAda, k.Key}, "administrators": {byRoot, k.Key}, "others": {byBob, ed25519Key()}} {
			got, err := b.KeyOf(ctx, c.by, "ada", k.ID)
			b.ok(err)
			if got.Key != c.want {
				b.t.Errorf("%s see %q", who, got.Key)
			}
		}
		own, err := b.OwnKey(ctx, byAda, k.ID)
		b.ok(err)
		if *own != *k {
			b.t.Errorf("key %+v, want %+v", own, k)
		}
		_, err = b.OwnKey(ctx, byBob, k.ID)
		b.refused(err, errs.KindNotFound)
		_, err = b.KeyOf(ctx, actor.Actor{}, "bob", k.ID)
		b.refused(err, errs.KindNotFound) // the key of another user

		for _, fingerprint := range []string{k.SHA256, k.Fingerprint, "MD5:" + k.Fingerprint} {
			found, owner, err := b.KeyByFingerprint(ctx, byRoot, fingerprint)
			b.ok(err)
			if found.ID != k.ID || owner.ID != ada.ID {
				b.t.Errorf("%s: key %d of user %d", fingerprint, found.ID, owner.ID)
			}
		}
		_, _, err = b.KeyByFingerprint(ctx, byAda, k.SHA256)
		b.refused(err, errs.KindForbidden)
		_, _, err = b.KeyByFingerprint(ctx, byRoot, "SHA256:short")
		b.refused(err, errs.KindInvalid)

		b.refused(b.DeleteKey(ctx, byAda, ada.ID, k.ID), errs.KindForbidden)
		b.refused(b.DeleteOwnKey(ctx, byBob, k.ID), errs.KindNotFound)
		b.ok(b.DeleteOwnKey(ctx, byAda, k.ID))
		b.refused(b.DeleteKey(ctx, byRoot, ada.ID, k.ID), errs.KindNotFound)
		b.event("remove_ssh_key")
	})
}
