package signin

import (
	"encoding/json"
	"strings"
	"testing"

	"svc/internal/user"
)

func TestUsernames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ claim, email, want string }{
		{"ada", "x@example.org", "ada"}, {"Ada Lovelace", "x@example.org", "Ada-Lovelace"}, {"ada@corp", "x@example.org", "ada"},
		{"", "ada@example.org", "ada"}, {"a", "ada@example.org", "ada"}, {"42", "43@example.org", "user"}, {"api", "", "api-user"},
		{"a..b.git", "", "a.b"}, {".git", "zoe@example.org", "git"}, {"--", "--@x", "user"}, {strings.Repeat("a", 400), "", strings.Repeat("a", 200)},
	} {
		if got := usernames(&person{username: tt.claim, email: tt.email})[0]; got != tt.want {
			t.Errorf("%q, %q: %q, want %q", tt.claim, tt.email, got, tt.want)
		}
	}
}

// FuzzUsernames checks that there is a valid candidate for any username and address.
func FuzzUsernames(f *testing.F) {
	f.Add("ada", "ada@example.org")
	f.Add("../..", "\x00@")
	f.Fuzz(func(t *testing.T, claim, email string) {
		names := usernames(&person{username: claim, email: email})
		if len(names) == 0 {
			t.Fatal("no name")
		}
		for _, name := range names {
			if len(name) < 2 || len(name) > 255 || strings.ContainsAny(name, "/\\ \x00") || user.Reserved(name) || strings.HasPrefix(name, "-") {
				t.Errorf("%q", name)
			}
		}
	})
}

func TestGroupList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`null`: "", `"a"`: "a", `["a","b"]`: "a,b", `[]`: "", `{"a":1}`: "!", `[1]`: "!", `true`: "!", `[["a"]]`: "!", `7`: "!",
	} {
		var claim any
		if err := json.Unmarshal([]byte(text), &claim); err != nil {
			t.Fatal(err)
		}
		got, err := groupList(claim)
		if (err != nil) != (want == "!") || err == nil && strings.Join(got, ",") != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := groupList(make([]any, maxGroups+1)); err == nil {
		t.Error("any number of groups is taken")
	}
}

// TestGroupsElsewhere reads claims that refer to the groups instead of listing them.
func TestGroupsElsewhere(t *testing.T) {
	t.Parallel()
	c := &client{Provider: Provider{RequiredGroups: []string{"staff"}}, OpenID: OpenID{GroupsClaim: "groups"}}
	for text, refused := range map[string]bool{
		`{"groups":["staff"]}`: false, `{}`: false, `{"_claim_names":{"groups":"src1"}}`: true, `{"_claim_names":{"address":"src1"}}`: false,
		`{"groups":["staff"],"_claim_names":{"groups":"src1"}}`: false, `{"_claim_names":7}`: false,
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(text), &claims); err != nil {
			t.Fatal(err)
		}
		if _, err := c.person("1", claims); (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}
