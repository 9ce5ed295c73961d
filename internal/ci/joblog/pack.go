package joblog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"svc/internal/blob"
)

// A packed log is a sequence of independent zstd frames and a seek table at the
// end: the seekable format of
// https://github.com/facebook/zstd/tree/dev/contrib/seekable_format. Other zstd
// decoders skip the table and read the file as usual.

const (
	// frameSize is the number of bytes of a log in one frame.
	frameSize = 1 << 20

	listMagic   = 0x184D2A5E // of the skippable frame with the seek table
	footerMagic = 0x8F92EAB1
	footerSize  = 9
	listHead    = 8
	entrySize   = 8
	// maxFrames bounds the seek table, which is kept in memory.
	maxFrames = 1 << 20
)

// Pack writes a log into the blob store, compressed.
func (s *Store) Pack(ctx context.Context, key string, r io.Reader) error {
	out, in := io.Pipe()
	go func() { in.CloseWithError(s.packer.frames(in, r)) }()
	_, err := s.Blobs.Put(ctx, key, out, blob.Options{ContentType: "application/zstd"})
	return errors.Join(err, out.Close())
}

// OpenPacked opens a log that was packed; size is that of the log.
func (s *Store) OpenPacked(ctx context.Context, key string, size int64) *Reader {
	return &Reader{&packedLog{ctx: ctx, store: s.Blobs, key: key, size: size}, size}
}

// packer compresses frames. Concurrent calls share one encoder, which is created at
// the first use.
type packer struct {
	once sync.Once
	z    *zstd.Encoder
	err  error
}

func (p *packer) encoder() (*zstd.Encoder, error) {
	p.once.Do(func() {
		p.z, p.err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(frameSize))
	})
	return p.z, p.err
}

func (p *packer) frames(w io.Writer, r io.Reader) error {
	z, err := p.encoder()
	if err != nil {
		return err
	}
	var list []byte
	n := uint32(0)
	var plain bytes.Buffer
	var packed []byte
	for end := false; !end; {
		plain.Reset()
		size, err := io.CopyN(&plain, r, frameSize)
		if end = err == io.EOF; err != nil && !end {
			return err
		}
		if size == 0 && n > 0 {
			break
		}
		packed = z.EncodeAll(plain.Bytes(), packed[:0])
		if _, err := w.Write(packed); err != nil {
			return err
		}
		list = binary.LittleEndian.AppendUint32(list, uint32(len(packed)))
		list = binary.LittleEndian.AppendUint32(list, uint32(size))
		n++
	}
	head := binary.LittleEndian.AppendUint32(nil, listMagic)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(list)+footerSize))
	list = binary.LittleEndian.AppendUint32(list, n)
	list = append(list, 0) // no checksums besides those of the frames
	list = binary.LittleEndian.AppendUint32(list, footerMagic)
	_, err = w.Write(append(head, list...))
	return err
}

// frame is the start of a frame: its offset in the log and in the file.
type frame struct{ plain, packed int64 }

// readFrames reads the seek table at the end of a file. A file without one is
// treated as one frame.
func readFrames(r io.ReadSeeker, size int64) ([]frame, error) {
	whole := []frame{{}}
	if size < listHead+footerSize {
		return whole, nil
	}
	foot := make([]byte, footerSize)
	if err := readAt(r, size-footerSize, foot); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(foot))
	list := n*entrySize + footerSize
	if binary.LittleEndian.Uint32(foot[5:]) != footerMagic || foot[4] != 0 || n == 0 || n > maxFrames || size < list+listHead {
		return whole, nil
	}
	text := make([]byte, listHead+n*entrySize)
	if err := readAt(r, size-list-listHead, text); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(text) != listMagic || int64(binary.LittleEndian.Uint32(text[4:])) != list {
		return whole, nil
	}
	var at frame
	frames := make([]frame, 0, n)
	for text = text[listHead:]; len(text) > 0; text = text[entrySize:] {
		frames = append(frames, at)
		at.packed += int64(binary.LittleEndian.Uint32(text))
		at.plain += int64(binary.LittleEndian.Uint32(text[4:]))
	}
	if at.packed != size-list-listHead {
		return whole, nil
	}
	return frames, nil
}

func readAt(r io.ReadSeeker, at int64, p []byte) error {
	if _, err := r.Seek(at, io.SeekStart); err != nil {
		return err
	}
	_, err := io.ReadFull(r, p)
	return err
}

// packedLog reads a packed log. A seek decompresses only the frame of the new
// offset.
type packedLog struct {
	ctx   context.Context
	store blob.Store
	key   string
	size  int64
	at    int64 // offset of the next Read

	object *blob.Object
	frames []frame
	plain  *zstd.Decoder
	read   int64 // offset of plain
}

// Read implements io.Reader.
func (l *packedLog) Read(p []byte) (int, error) {
	if l.at >= l.size {
		return 0, io.EOF
	}
	if l.plain == nil || l.read > l.at || l.read+frameSize < l.at {
		if err := l.start(); err != nil {
			return 0, err
		}
	}
	if l.read < l.at {
		n, err := io.CopyN(io.Discard, l.plain, l.at-l.read)
		if l.read += n; err != nil {
			return 0, err
		}
	}
	n, err := l.plain.Read(p)
	l.read += int64(n)
	l.at = l.read
	return n, err
}

// start seeks to the frame of the next Read.
func (l *packedLog) start() (err error) {
	if l.object == nil {
		if l.object, err = l.store.Get(l.ctx, l.key); err != nil {
			return err
		}
	}
	// The first frame is found without the table.
	if l.frames == nil && l.at >= frameSize {
		if l.frames, err = readFrames(l.object, l.object.Size); err != nil {
			return err
		}
	}
	var from frame
	if i := sort.Search(len(l.frames), func(i int) bool { return l.frames[i].plain > l.at }); i > 0 {
		from = l.frames[i-1]
	}
	if _, err := l.object.Seek(from.packed, io.SeekStart); err != nil {
		return err
	}
	l.read = from.plain
	if l.plain != nil {
		return l.plain.Reset(l.object)
	}
	l.plain, err = zstd.NewReader(l.object, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(8<<20))
	return err
}

// Seek implements io.Seeker.
func (l *packedLog) Seek(offset int64, whence int) (int64, error) {
	return seek(&l.at, l.size, offset, whence)
}

// Close implements io.Closer.
func (l *packedLog) Close() error {
	if l.plain != nil {
		l.plain.Close()
		l.plain = nil
	}
	if l.object == nil {
		return nil
	}
	object := l.object
	l.object = nil
	return object.Close()
}
