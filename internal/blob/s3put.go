package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"svc/internal/errs"
)

const (
	firstPart = 8 << 20 // the minimum of S3 is 5 MiB
	maxParts  = 10_000
	abortTime = 30 * time.Second
	// answerTime is the maximum wait for the response to a request that was sent.
	answerTime = time.Minute
	// maxStall is the maximum time in which a server reads nothing of an upload. It includes
	// the wait for the response.
	maxStall = 2 * answerTime
)

// errStalled means that the server reads nothing of an upload.
var errStalled = errors.New("the upload has stalled")

// upload calls send with the content of an upload. If the server reads nothing for a while,
// the context of send ends, and the error is Unavailable.
func (b *bucket) upload(ctx context.Context, data []byte, send func(context.Context, io.ReadSeeker) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(b.stall, func() { cancel(errStalled) })
	defer stall.Stop()
	err := send(within, &sending{bytes.NewReader(data), func() { stall.Reset(b.stall) }})
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(within), errStalled) {
		return errs.Unavailable("the object storage does not answer").Because(errors.Join(errStalled, err))
	}
	return writeKind(err)
}

// sending is the content of an upload. It calls read when a part of it was read.
type sending struct {
	io.ReadSeeker
	read func()
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	s.read()
	return s.ReadSeeker.Read(p)
}

// partSize returns the size of a part. It grows with the number of the part, so that
// small objects need little memory, and 10,000 parts are enough for 480 GiB.
func partSize(number int) int { return firstPart << ((number - 1) / 2000) }

// Put implements Store. It sends small objects in one request, and larger objects in
// parts. One part is sent while the next is read, so two parts are in memory.
func (b *bucket) Put(ctx context.Context, key string, r io.Reader, o Options) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	o, err := o.checked()
	if err != nil {
		return 0, err
	}
	size, err := b.put(ctx, key, endsWith(ctx, r), o)
	if err != nil {
		return 0, fmt.Errorf("put object %s: %w", key, err)
	}
	return size, nil
}

func (b *bucket) put(ctx context.Context, key string, r io.Reader, o Options) (int64, error) {
	first, end, err := readPart(r, make([]byte, 0, firstBuffer(o.Size)), partSize(1))
	if err != nil {
		return 0, err
	}
	if !end {
		return b.putParts(ctx, key, first, r, o)
	}
	size := int64(len(first))
	if err := o.checkSize(size); err != nil {
		return 0, err
	}
	return size, b.upload(ctx, first, func(ctx context.Context, body io.ReadSeeker) error {
		_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: b.at(key), Body: body, ContentType: &o.ContentType})
		return err
	})
}

func (b *bucket) putParts(ctx context.Context, key string, first []byte, r io.Reader, o Options) (size int64, err error) {
	started, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: b.at(key), ContentType: &o.ContentType,
	})
	if err != nil {
		return 0, writeKind(err)
	}
	defer func() {
		if err != nil {
			b.abort(ctx, key, started.UploadId)
		}
	}()
	parts, size, err := b.sendParts(ctx, key, started.UploadId, first, r)
	if err != nil {
		return 0, err
	}
	if err := o.checkSize(size); err != nil {
		return 0, err
	}
	_, err = b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.name, Key: b.at(key), UploadId: started.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return size, writeKind(err)
}

// sendParts uploads first and the rest of r in parts.
func (b *bucket) sendParts(ctx context.Context, key string, upload *string, first []byte, r io.Reader) ([]types.CompletedPart, int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(1) // one at a time, so that parts are appended in order

	var parts []types.CompletedPart
	spare := make(chan []byte, 2)
	spare <- nil
	size, err := eachPart(ctx, first, r, spare, func(number int32, data []byte) {
		sending.Go(func() error {
			err := b.upload(ctx, data, func(ctx context.Context, body io.ReadSeeker) error {
				out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &b.name, Key: b.at(key), UploadId: upload, PartNumber: &number, Body: body})
				if err == nil {
					parts = append(parts, types.CompletedPart{ETag: out.ETag, PartNumber: &number})
				}
				return err
			})
			if err != nil {
				return err
			}
			spare <- data
			return nil
		})
	})
	if err != nil {
		cancel() // stops the upload of the current part
	}
	if serr := sending.Wait(); err == nil {
		err = serr
	}
	return parts, size, err
}

// eachPart calls send for first and for each further part of r. It reads into
// buffers that are returned through spare.
func eachPart(ctx context.Context, first []byte, r io.Reader, spare <-chan []byte, send func(int32, []byte)) (size int64, err error) {
	data, end := first, false
	for number := 1; len(data) > 0; number++ {
		if number > maxParts {
			return 0, errs.TooLarge("the object is too large for the object storage")
		}
		size += int64(len(data))
		send(int32(number), data)
		if end {
			break
		}
		select {
		case data = <-spare:
		case <-ctx.Done():
			return 0, context.Cause(ctx) // the error of a part, if one failed
		}
		data, end, err = readPart(r, data[:0], partSize(number+1))
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// abort aborts a multipart upload, so that its parts do not use storage. It works
// also if ctx has ended, which is the most common reason.
func (b *bucket) abort(ctx context.Context, key string, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	// An error is ignored: the caller has the relevant error, and a lifecycle rule
	// of the bucket can delete the parts.
	b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: b.at(key), UploadId: upload})
}

// firstBuffer returns the initial size of the buffer. If the size of the object is
// known, it is one byte larger, so that the end is detected without growing.
func firstBuffer(size int64) int {
	if size > 0 {
		return int(min(size+1, firstPart))
	}
	return 64 << 10
}

// readPart appends to buf up to most bytes, and reports whether r is at its end.
func readPart(r io.Reader, buf []byte, most int) ([]byte, bool, error) {
	for len(buf) < most {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(most, max(64<<10, 2*cap(buf))))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):min(most, cap(buf))])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, true, nil
		}
		if err != nil {
			return buf, false, err
		}
	}
	return buf, false, nil
}
