package api

import "svc/internal/repo"

// signatures is an option for endpoints that return a signature of any type.
var signatures = returns(sshSignatureJSON{}, pgpSignatureJSON{}, x509SignatureJSON{})

type signatureJSON struct {
	Type   string `json:"signature_type"`
	Status string `json:"verification_status"`
	Source string `json:"commit_source"`
}

type sshSignatureJSON struct {
	signatureJSON
	Key *keyJSON `json:"key"`
}

// pgpSignatureJSON is a PGP signature. Its key fields are null if no user has the
// key.
type pgpSignatureJSON struct {
	signatureJSON
	KeyID        *int64  `json:"gpg_key_id"`
	PrimaryKeyID *string `json:"gpg_key_primary_keyid"`
	UserName     *string `json:"gpg_key_user_name"`
	UserEmail    *string `json:"gpg_key_user_email"`
	SubkeyID     *int64  `json:"gpg_key_subkey_id"`
}

type x509SignatureJSON struct {
	signatureJSON
	Certificate *struct{} `json:"x509_certificate"`
}

func toPGPSignature(base signatureJSON, g *repo.GPGSignature) pgpSignatureJSON {
	out := pgpSignatureJSON{signatureJSON: base}
	if g == nil {
		return out
	}
	if g.Primary != "" {
		out.PrimaryKeyID = &g.Primary
	}
	if g.Key != nil {
		out.KeyID, out.UserName, out.UserEmail = &g.Key.ID, &g.Name, &g.Email
	}
	return out
}

func presentSignature(s *repo.Signature, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	base := signatureJSON{s.Kind, string(s.Status), "gitaly"} // the value of the public API
	switch s.Kind {
	case "PGP":
		return toPGPSignature(base, s.GPG), nil
	case "X509":
		return x509SignatureJSON{signatureJSON: base}, nil
	}
	out := sshSignatureJSON{signatureJSON: base}
	if s.Key != nil {
		key := toKey(*s.Key)
		out.Key = &key
	}
	return out, nil
}
