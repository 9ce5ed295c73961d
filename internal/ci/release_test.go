package ci

import (
	"os/exec"
	"testing"
)

func TestShellText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`plain`:                   `plain`,
		`$V and ${V}`:             `value and value`,
		"$(echo no) `echo no`":    "$(echo no) `echo no`",
		`"quoted" \ 'too'`:        `"quoted" \ 'too'`,
		`$V$`:                     `value$`,
		`${V:-no} ${V ${} $1 $$V`: `${V:-no} ${V ${} $1 $value`,
		"two\nlines !":            "two\nlines !",
		`$HOSTILE`:                `$(echo no)"`,
	} {
		c := exec.Command("sh", "-c", "printf %s "+shellText(text))
		c.Env = []string{"V=value", `HOSTILE=$(echo no)"`}
		got, err := c.Output()
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, want %q (%v)", text, got, want, err)
		}
	}
}
