package app

import (
	"context"
	"fmt"
)

// sealedColumn is a database column whose values are encrypted with the instance
// key.
type sealedColumn struct{ table, column string }

// sealed returns all columns with encrypted values, for key rotation and the doctor
// command. A new one must be added here.
func (a *App) sealed() []sealedColumn {
	return []sealedColumn{
		{"instance_variables", "value"},
		{"users", "otp_secret"},
		{"ci_variables", "value"},
		{"pipelines", "variables"},
		{"jobs", "variables"},
		{"pipeline_triggers", "token"},
		{"pipeline_schedules", "variables"},
		{"signing_keys", "sealed"},
		{"runner_registration_tokens", "sealed"},
		{"alert_integrations", "token"},
		{"hooks", "secrets"},
		{"error_keys", "sealed"},
		{"error_settings", "token"},
		{"pages_domains", "private_key"},
		{"pages_acme", "value"},
		{"terraform_state_versions", "sealed_key"},
		{"feature_flag_clients", "sealed"},
		{"secure_files", "sealed_key"},
		{"project_imports", "credentials"},
		{"mirrors", "secrets"},
		{"bulk_imports", "token"},
		{"project_file_imports", "source"},
		{"project_exports", "upload"},
	}
}

// RotateKey creates a new instance key, encrypts all stored values with it and
// returns their number. A value that changes concurrently is already encrypted with
// the new key and is not replaced.
func (a *App) RotateKey(ctx context.Context) (int, error) {
	if err := a.Keys.Rotate(); err != nil {
		return 0, err
	}
	n := 0
	for _, s := range a.sealed() {
		rows, err := s.read(ctx, a.DB)
		if err != nil {
			return n, err
		}
		for _, r := range rows {
			again, changed, err := a.Keys.Reseal(r.text)
			if err != nil {
				return n, fmt.Errorf("%s of %s %d: %w", s.column, s.table, r.id, err)
			}
			if !changed {
				continue
			}
			if err := s.replace(ctx, a.DB, r, again); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
