package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposeFiles loads the settings of the services in the Compose files.
func TestComposeFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/compose*.yml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	variable := regexp.MustCompile(`\$\{[A-Z0-9_]+:-([^}]*)\}`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var compose struct {
			Services map[string]struct {
				Environment map[string]string
				Volumes     []string
			}
		}
		if err := yaml.Unmarshal(text, &compose); err != nil {
			t.Fatal(err)
		}
		servers := 0
		for name, service := range compose.Services {
			var env []string
			known := map[string]bool{}
			for _, s := range settings() {
				known[s.env()] = true
			}
			for key, value := range service.Environment {
				if !strings.HasPrefix(key, envPrefix) {
					continue
				}
				if !known[key] {
					t.Errorf("%s: %s: there is no setting %s", file, name, key)
				}
				env = append(env, key+"="+variable.ReplaceAllString(value, "$1"))
			}
			if len(env) == 0 {
				continue
			}
			servers++
			c, err := load(t, "", env, nil)
			if err != nil {
				t.Errorf("%s: %s: %v", file, name, err)
			}
			if c.DatabaseURL != "" && c.Buckets[defaultStorage] != OwnBucket {
				t.Errorf("%s: %s: several nodes need repositories in a bucket: %v", file, name, c.Storages)
			}
		}
		if servers == 0 {
			t.Errorf("%s has no server", file)
		}
	}
}
