package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestPathFromName creates projects without a path.
func TestPathFromName(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		for name, path := range map[string]string{
			"Äpp": "app", "A\u0308pp Two": "app-two", "Straße 7": "strasse-7", "Smørrebrød & Œuvre": "smorrebrod-oeuvre", "Łódź": "lodz", "Programación": "programacion",
			"My App": "my-app", "v1.2": "v1.2", "日本 go": "go",
		} {
			s.Check(t, apptest.Call{Name: name, Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":%q}`, name), Status: 201, Want: fmt.Sprintf(`{"path":%q}`, path)})
		}
	})
}
