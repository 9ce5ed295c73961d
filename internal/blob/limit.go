package blob

import "io"

// LimitReader returns a reader of r that returns the error over if r has more than n
// bytes.
func LimitReader(r io.Reader, n int64, over error) io.Reader {
	return &limitReader{r, n, over}
}

type limitReader struct {
	r    io.Reader
	left int64
	over error
}

// Read implements io.Reader.
func (l *limitReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.over
	}
	return n, err
}
