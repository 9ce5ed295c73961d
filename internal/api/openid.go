package api

import (
	"net/http"

	"svc/internal/signing"
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/oauth/discovery/keys"
)

// OpenIDPath tells whether a path is one by which others learn how to check
// the tokens that we sign. They stand beside the API.
func OpenIDPath(path string) bool { return path == discoveryPath || path == keysPath }

func (a *API) openIDRoutes() {
	for path, h := range map[string]http.HandlerFunc{discoveryPath: a.discovery, keysPath: a.signingKeys} {
		a.mux.Get(path, h)
		a.mux.Head(path, h)
	}
}

// discoveryJSON is what OpenID Connect Discovery 1.0 asks for.
type discoveryJSON struct {
	Issuer            string   `json:"issuer"`
	KeysURI           string   `json:"jwks_uri"`
	ResponseTypes     []string `json:"response_types_supported"`
	SubjectTypes      []string `json:"subject_types_supported"`
	SigningAlgorithms []string `json:"id_token_signing_alg_values_supported"`
	Claims            []string `json:"claims_supported"`
}

// discovery says where the keys are:
// https://docs.gitlab.com/ci/secrets/id_token_authentication/
func (a *API) discovery(w http.ResponseWriter, r *http.Request) {
	a.writeJSON(w, r, http.StatusOK, discoveryJSON{
		Issuer: a.Site.URL, KeysURI: a.Site.URL + keysPath, ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"},
		SigningAlgorithms: []string{signing.Algorithm},
		Claims: []string{
			"iss", "sub", "aud", "exp", "iat", "nbf", "jti", "namespace_id", "namespace_path", "project_id", "project_path", "user_id", "user_login",
			"pipeline_id", "pipeline_source", "job_id", "ref", "ref_type", "ref_protected", "environment", "runner_id", "sha",
		},
	})
}

// keySetJSON is a set of keys as RFC 7517 has it.
type keySetJSON struct {
	Keys []signing.PublicKey `json:"keys"`
}

func (a *API) signingKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := a.Signing.PublicKeys(r.Context())
	if err != nil {
		a.Log.ErrorContext(r.Context(), "signing keys", "error", err)
		a.writeJSON(w, r, http.StatusInternalServerError, messageJSON{"500 Internal Server Error"})
		return
	}
	a.writeJSON(w, r, http.StatusOK, keySetJSON{keys})
}
