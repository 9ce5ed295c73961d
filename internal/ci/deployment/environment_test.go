package deployment

import "testing"

func TestEnvironmentSlug(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"production": "production", "my-app-1": "my-app-1"} {
		if got := Slug(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"review/a", "review-a", "Review-a", "review/a-name-that-is-much-too-long", "1", "-x", "ä"} {
		s := Slug(name)
		if len(s) > 24 || s[0] < 'a' || s[0] > 'z' || s[len(s)-1] == '-' {
			t.Errorf("%s is %s", name, s)
		}
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s are both %s", name, other, s)
		}
		seen[s] = name
	}
}
