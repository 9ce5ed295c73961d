package api

import (
	"fmt"
	"net/http"
	"slices"

	"svc/internal/oauth"
	"svc/internal/signing"
)

// Paths of OpenID Connect and OAuth 2.0 outside the API that are not pages.
const (
	discoveryPath = "/.well-known/openid-configuration"
	metadataPath  = "/.well-known/oauth-authorization-server"
	keysPath      = "/oauth/discovery/keys"
	tokenPath     = "/oauth/token"
	tokenInfoPath = "/oauth/token/info"
	revokePath    = "/oauth/revoke"
	userInfoPath  = "/oauth/userinfo"
	devicePath    = "/oauth/authorize_device"
)

// OpenIDPath reports whether a path belongs to OpenID Connect or OAuth 2.0 and is
// not a page.
func OpenIDPath(path string) bool {
	switch path {
	case discoveryPath, metadataPath, keysPath, tokenPath, tokenInfoPath, revokePath, userInfoPath, devicePath:
		return true
	}
	return false
}

func (a *API) openIDRoutes() {
	for path, h := range map[string]http.HandlerFunc{discoveryPath: a.discovery, metadataPath: a.discovery, keysPath: a.signingKeys} {
		a.mux.Get(path, h)
		a.mux.Head(path, h)
	}
}

// discoveryJSON is the metadata of OpenID Connect Discovery 1.0 and RFC 8414.
type discoveryJSON struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	UserInfoEndpoint      string   `json:"userinfo_endpoint"`
	KeysURI               string   `json:"jwks_uri"`
	Scopes                []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	SubjectTypes          []string `json:"subject_types_supported"`
	SigningAlgorithms     []string `json:"id_token_signing_alg_values_supported"`
	ClaimTypes            []string `json:"claim_types_supported"`
	Prompts               []string `json:"prompt_values_supported"`
	Claims                []string `json:"claims_supported"`
	RequestObjects        bool     `json:"request_parameter_supported"`
	RequestURIs           bool     `json:"request_uri_parameter_supported"`
}

// discovery returns the supported features and the URL of the keys, for sign-in and
// for services that verify ID tokens of CI/CD jobs:
// https://docs.gitlab.com/integration/openid_connect_provider/
// https://docs.gitlab.com/ci/secrets/id_token_authentication/
func (a *API) discovery(w http.ResponseWriter, r *http.Request) {
	site := a.Site.URL
	methods := []string{"client_secret_basic", "client_secret_post", "none"}
	scopes := []string{}
	for _, s := range oauth.Scopes() {
		scopes = append(scopes, s.Name)
	}
	ofJobs := []string{
		"nbf", "jti", "namespace_id", "namespace_path", "project_id", "project_path", "user_id", "user_login", "pipeline_id", "pipeline_source",
		"job_id", "ref", "ref_type", "ref_protected", "environment", "runner_id", "sha",
	}
	a.writeJSON(w, r, http.StatusOK, discoveryJSON{
		Issuer: site, AuthorizationEndpoint: site + "/oauth/authorize", TokenEndpoint: site + tokenPath, RevocationEndpoint: site + revokePath,
		UserInfoEndpoint: site + userInfoPath, KeysURI: site + keysPath, Scopes: scopes,
		ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes:       []string{"authorization_code", "password", "refresh_token"},
		TokenAuthMethods: methods, RevocationAuthMethods: methods, ChallengeMethods: []string{"S256"},
		SubjectTypes: []string{"public"}, SigningAlgorithms: []string{signing.Algorithm}, ClaimTypes: []string{"normal"},
		Prompts: []string{"none", "consent"}, Claims: slices.Concat(a.OAuth.ClaimNames(), ofJobs),
	})
}

// keySetJSON is a JSON Web Key Set: RFC 7517.
type keySetJSON struct {
	Keys []signing.PublicKey `json:"keys"`
}

func (a *API) signingKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := a.Signing.PublicKeys(r.Context())
	if err != nil {
		a.refuse(&call{Context: r.Context(), w: w, r: r}, fmt.Errorf("signing keys: %w", err))
		return
	}
	a.writeJSON(w, r, http.StatusOK, keySetJSON{keys})
}
