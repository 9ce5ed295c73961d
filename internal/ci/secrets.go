package ci

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"svc/internal/ci/config"
)

// SecretUse is a secret that the runner fetches from a secrets provider before
// the job starts. The server never sees its value.
type SecretUse struct {
	Name     string
	Provider string
	// Config is the secret in the CI/CD configuration, and Server the access to
	// the provider. Both have the fields of the runner API.
	Config map[string]any
	Server map[string]any
	File   *bool
}

// prepareSecrets sets how the runner gets the secrets of a job. It returns
// unrunnable if it cannot get them.
func (a *Assignment) prepareSecrets(ctx context.Context) error {
	if len(a.Job.Options.Secrets) == 0 {
		return nil
	}
	if f := a.Manager.Info.Features; len(f) > 0 && !f["vault_secrets"] {
		return &unrunnable{RunnerUnsupported, "This runner does not support secrets."}
	}
	texts := a.expander(ctx)
	known := func(name string) string { return texts.All("${" + name + "}") }
	for _, name := range slices.Sorted(maps.Keys(a.Job.Options.Secrets)) {
		wanted := a.Job.Options.Secrets[name]
		use := SecretUse{Name: name, Provider: wanted.Provider, File: wanted.File}
		var err error
		if use.Config, err = secretConfig(wanted); err != nil {
			return &unrunnable{DataIntegrityFailure, fmt.Sprintf("The secret %s cannot be read: %v.", name, err)}
		}
		token, problem := secretToken(wanted, a.Job.Options.IDTokens, texts.Existing)
		if problem == "" {
			use.Server, problem = secretServer(wanted.Provider, token, known)
		}
		if err := texts.failed(); err != nil {
			return err
		}
		if problem != "" {
			return &unrunnable{UnmetPrerequisites, fmt.Sprintf("The secret %s cannot be fetched: %s.", name, problem)}
		}
		a.Secrets = append(a.Secrets, use)
	}
	return nil
}

// secretConfig decodes the configuration of a secret. Numbers become strings,
// as the runner expects. A string is short for a hash with the name of the
// secret (for AWS, "id#field").
func secretConfig(s config.Secret) (map[string]any, error) {
	var written any
	if err := json.Unmarshal(s.Config, &written); err != nil {
		return nil, err
	}
	switch c := written.(type) {
	case string:
		if s.Provider == "aws_secrets_manager" {
			id, field, _ := strings.Cut(c, "#")
			return map[string]any{"secret_id": id, "field": field}, nil
		}
		return map[string]any{"name": c}, nil
	case map[string]any:
		for key, value := range c {
			if n, ok := value.(float64); ok {
				c[key] = fmt.Sprint(n)
			}
		}
		return c, nil
	}
	return nil, fmt.Errorf("it is neither a text nor a hash")
}

// secretToken returns the ID token that authenticates to the secrets provider:
// the one that the secret names, or the only one of the job.
func secretToken(s config.Secret, tokens map[string]config.IDToken, fill func(string) string) (token, problem string) {
	if s.Token != "" {
		return fill(s.Token), ""
	}
	if len(tokens) != 1 {
		return "", "token: name one of the id_tokens, because the job does not have exactly one"
	}
	for name := range tokens {
		token = fill("$" + name)
	}
	return token, ""
}

// secretServer returns the access to a secrets provider. The variables of the
// job configure it, with the documented names:
// https://docs.gitlab.com/ci/secrets/
func secretServer(provider, token string, known func(name string) string) (server map[string]any, problem string) {
	some := func(fields map[string]string) map[string]any {
		server := map[string]any{"jwt": token}
		for field, variable := range fields {
			server[field] = known(variable)
		}
		return server
	}
	must := ""
	switch provider {
	case "vault":
		must = "VAULT_SERVER_URL"
		path := known("VAULT_AUTH_PATH")
		if path == "" {
			path = "jwt"
		}
		data := map[string]any{"jwt": token}
		if role := known("VAULT_AUTH_ROLE"); role != "" {
			data["role"] = role
		}
		server = map[string]any{
			"url": known(must), "namespace": known("VAULT_NAMESPACE"), "auth": map[string]any{"name": "jwt", "path": path, "data": data},
		}
	case "gcp_secret_manager":
		must = "GCP_PROJECT_NUMBER"
		server = some(map[string]string{
			"project_number": must, "workload_identity_federation_pool_id": "GCP_WORKLOAD_IDENTITY_FEDERATION_POOL_ID",
			"workload_identity_federation_provider_id": "GCP_WORKLOAD_IDENTITY_FEDERATION_PROVIDER_ID",
		})
	case "azure_key_vault":
		must = "AZURE_KEY_VAULT_SERVER_URL"
		server = some(map[string]string{"url": must, "client_id": "AZURE_CLIENT_ID", "tenant_id": "AZURE_TENANT_ID"})
	case "aws_secrets_manager":
		server = some(map[string]string{"region": "AWS_REGION", "role_arn": "AWS_ROLE_ARN", "role_session_name": "AWS_ROLE_SESSION_NAME"})
	default:
		return nil, provider + " is not supported here"
	}
	if must != "" && known(must) == "" {
		return nil, "the variable " + must + " is missing"
	}
	return server, ""
}
