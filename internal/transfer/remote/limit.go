package remote

import (
	"io"
	"time"
)

// Limits bound what is read of a source. The zero value of a field is the usual limit.
type Limits struct {
	Body    int64         // bytes of an answer
	Total   int64         // bytes of all answers, without repositories
	Held    int64         // bytes of the answers that are held in memory at once, and of the values in them
	Items   int           // of one list
	Names   int           // of one kind that are held in memory: users, labels, tags
	File    int64         // bytes of an upload or avatar
	Staged  int64         // bytes of all repositories and files of a group or project
	Wait    time.Duration // that the source may ask for before a request
	Request time.Duration // of one request with its answer
	Tries   int           // of a request
	Pause   time.Duration // before the second try
	Stall   time.Duration // of a repository
}

// OrUsual replaces zero values with the usual limits.
func (l Limits) OrUsual() Limits {
	or := func(n *int64, usual int64) {
		if *n == 0 {
			*n = usual
		}
	}
	or(&l.Body, 64<<20)
	or(&l.Total, 16<<30)
	or(&l.Held, 128<<20)
	or(&l.File, 512<<20)
	or(&l.Staged, 32<<30)
	or((*int64)(&l.Wait), int64(5*time.Minute))
	or((*int64)(&l.Request), int64(time.Minute))
	or((*int64)(&l.Pause), int64(time.Second))
	if l.Items == 0 {
		l.Items = 500_000
	}
	if l.Names == 0 {
		l.Names = 100_000
	}
	if l.Tries == 0 {
		l.Tries = 5
	}
	return l
}

// bounded is the body of an answer. It fails instead of cutting the answer short.
type bounded struct {
	from   io.Reader
	left   int64
	client *Client
	file   bool  // it is not held in memory
	err    error // a limit was exceeded
	broken error // of the connection
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		b.err = fail("An answer of the source is too large.")
	case b.client.read.Add(int64(n)) > b.client.limits.Total:
		b.err = overLimit("The answers of the source have more than %d MiB in total.", b.client.limits.Total>>20)
	case !b.file && b.client.held.Add(int64(n)) > b.client.limits.Held:
		b.err = b.client.tooMuch()
	}
	if b.err != nil {
		return 0, b.err
	}
	if err != nil && err != io.EOF {
		b.broken = err
	}
	return n, err
}

// Close implements io.Closer.
func (*bounded) Close() error { return nil }

func (c *Client) tooMuch() *Failure {
	return overLimit("A page of the source with everything that belongs to it takes more than %d MiB.", c.limits.Held>>20)
}

// weigh counts the memory that the values of an answer take, besides their text. It
// returns a Failure if a value has too many parts, or the current page and everything
// that belongs to it takes too much memory.
func (c *Client) weigh(raw []byte) error {
	n := weight(raw)
	if n > c.limits.Held/2 {
		return fail("It has too many values.")
	}
	if c.held.Add(n) > c.limits.Held {
		return c.tooMuch()
	}
	return nil
}

// weight estimates the memory that decoding takes, besides the text: an element of a
// list may become a structure of some hundred bytes, even if its text is "{}".
func weight(raw []byte) (n int64) {
	const element, member = 256, 16
	var lists []bool // of the values that are open: whether each is a list
	quoted, escaped := false, false
	for _, b := range raw {
		switch {
		case escaped:
			escaped = false
		case quoted:
			quoted, escaped = b != '"', b == '\\'
		case b == '"':
			quoted = true
		case b == '[', b == '{':
			lists = append(lists, b == '[')
			n += member
		case b == ']', b == '}':
			lists = lists[:max(len(lists)-1, 0)]
		case b == ',' && len(lists) > 0 && lists[len(lists)-1]:
			n += element
		case b == ',':
			n += member
		}
	}
	return n
}
