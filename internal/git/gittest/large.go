package gittest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// Size is the size of a generated repository.
type Size struct {
	Commits int
	Files   int // in the last commit
	Lines   int // lines per file; default: 40
	Authors int // default: 20
}

// Large is the size of the repository that benchmarks use.
var Large = Size{Commits: 20_000, Files: 5_000}

// Generate creates a repository with a linear history on main. The first commit adds all
// files, the others change one to three of them. The result is always the same.
func Generate(t testing.TB, s Size) *Repo {
	t.Helper()
	r := New(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		err := Stream(in, s)
		if shut := in.Close(); err == nil {
			err = shut
		}
		wrote <- err
	}()
	r.Import(out)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	return r
}

// Stream writes the repository of Generate in the format of git fast-import.
func Stream(to io.Writer, s Size) error {
	if s.Lines == 0 {
		s.Lines = 40
	}
	if s.Authors == 0 {
		s.Authors = 20
	}
	w := bufio.NewWriterSize(to, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range s.Commits {
		seconds := 1_500_000_000 + n*600
		author := n % s.Authors
		message := fmt.Sprintf("Change number %d\n\nIt had to be.\n", n)
		fmt.Fprintf(w, "commit refs/heads/main\nmark :%d\nauthor Author %d <author%d@example.com> %d +0100\ncommitter Author %d <author%d@example.com> %d +0100\ndata %d\n%s\n",
			n+1, author, author, seconds, author, author, seconds, len(message), message)
		if n == 0 {
			for f := range s.Files {
				writeFile(w, rnd, f, 0, s.Lines)
			}
		} else {
			for range 1 + rnd.IntN(3) {
				writeFile(w, rnd, rnd.IntN(s.Files), n, s.Lines)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// Path returns the path of a file by its number: 25 files per directory, and 20 directories
// in each parent.
func Path(file int) string {
	return fmt.Sprintf("dir%02d/sub%02d/file%04d.txt", file/500, file/25%20, file)
}

// writeFile writes a file most of whose lines depend only on its number, so that a change
// affects few lines.
func writeFile(w io.Writer, rnd *rand.Rand, file, commit, lines int) {
	var text []byte
	same := rand.New(rand.NewPCG(uint64(file), 7))
	for i := range lines {
		word := same.Uint64()
		if commit > 0 && rnd.IntN(10) == 0 {
			word = rnd.Uint64()
		}
		text = fmt.Appendf(text, "line %d of file %d says %x\n", i, file, word)
	}
	fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", Path(file), len(text), text)
}
