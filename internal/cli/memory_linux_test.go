package cli

import "testing"

func TestProgramPages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"00400000-0247b000 r-xp 00000000 fe:00 10332606                           /opt/svc\n":       true,
		"0247b000-047e9000 r--p 0207b000 fe:00 10332606                           /opt/svc\n":       true,
		"047e9000-049ee000 rw-p 043e9000 fe:00 10332606                           /opt/svc\n":       false,
		"00400000-0247b000 r-xp 00000000 fe:00 10332606                           /opt/svc-other\n": false,
		"49359800000-4935cc00000 rw-p 00000000 00:00 0 \n":                                          false,
		"7ffc1000-7ffc2000 r-xp 00000000 00:00 0                          [vdso]\n":                 false,
		"": false,
	} {
		from, to, ok := programPages(line, "/opt/svc")
		if ok != want || ok && from >= to {
			t.Errorf("%q: %x-%x, %v", line, from, to, ok)
		}
	}
	unmapProgram() // the test continues to run
}
