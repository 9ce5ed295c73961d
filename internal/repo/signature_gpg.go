package repo

import (
	"context"
	"strings"

	"svc/internal/git"
	"svc/internal/pgp"
	"svc/internal/user"
)

// checkGPG checks a PGP signature. It is verified if a key of the user with the
// email address made it, and the key has this address.
func (c *checker) checkGPG(ctx context.Context, found *Signature, signed *git.Signed, address string) error {
	found.GPG = &GPGSignature{}
	sig, err := pgp.ParseSignature(signed.Signature)
	if err != nil {
		return nil // not a signature that could be checked
	}
	found.GPG.KeyID, found.GPG.Primary = sig.ID, sig.ID
	keys, err := c.users.SigningGPGKeys(ctx, sig)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		found.Status = UnknownKey
		return nil
	}
	for _, k := range keys { // key IDs are short: several keys may have the same one
		parsed, err := k.Parse()
		if err != nil || parsed.Verify(sig, signed.Payload) != nil {
			continue
		}
		found.GPG.Key, found.GPG.Primary = &k, parsed.ID
		return c.rateGPG(ctx, found, parsed, address)
	}
	return nil
}

// rateGPG sets the status of a valid signature.
func (c *checker) rateGPG(ctx context.Context, found *Signature, parsed *pgp.Key, address string) error {
	g := found.GPG
	owners, err := c.users.FindAll(ctx, []int64{g.Key.UserID})
	if err != nil {
		return err
	}
	g.User = owners[g.Key.UserID]
	emails, err := c.gpgEmails(ctx, g.Key)
	if err != nil {
		return err
	}
	confirmed := false
	for _, e := range emails {
		same := strings.EqualFold(e.Email, address)
		if g.Email == "" || same {
			g.Name, g.Email = e.Name, e.Email
		}
		confirmed = confirmed || e.Verified
		if same && e.Verified {
			found.Status = Verified
		}
	}
	if found.Status == Unverified {
		owner, err := c.owner(ctx, address)
		if err != nil {
			return err
		}
		switch {
		case owner != nil && owner.ID == g.Key.UserID:
			found.Status = SameUserOtherEmail
		case confirmed:
			found.Status = OtherUser
		default:
			found.Status = UnverifiedKey
		}
	}
	if parsed.Revoked() {
		found.Status = RevokedKey
	}
	return nil
}

// gpgEmails returns the email addresses of a key, cached, because the commits of a list have
// few different keys.
func (c *checker) gpgEmails(ctx context.Context, k *user.GPGKey) ([]user.GPGEmail, error) {
	if known, ok := c.gpg[k.ID]; ok {
		return known, nil
	}
	emails, err := c.users.GPGEmails(ctx, k)
	if err == nil {
		c.gpg[k.ID] = emails
	}
	return emails, err
}
