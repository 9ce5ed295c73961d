package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"svc/internal/errs"
)

// bucket is a Store that stores objects in S3 or an S3-compatible server.
type bucket struct {
	client *s3.Client
	http   aws.HTTPClient
	name   string
	prefix string // of all keys, with a trailing "/"; may be empty
	stall  time.Duration
}

func openS3(ctx context.Context, c s3Config) (Store, error) {
	// The client of the SDK is used because only that client reads certificates
	// from the environment.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64
		t.ResponseHeaderTimeout = answerTime
	})
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		// Not all servers support these checksums. Without TLS, the signature
		// protects the content.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if c.region != "" {
		options = append(options, config.WithRegion(c.region))
	}
	if c.accessKey != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.accessKey, c.secretKey, "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("open S3 store: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if built, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = built.Freeze()
	}
	b := &bucket{http: cfg.HTTPClient, name: c.bucket, stall: maxStall}
	b.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = c.pathStyle
		if c.endpoint != "" {
			o.BaseEndpoint = &c.endpoint
		}
	})
	if c.prefix != "" {
		b.prefix = c.prefix + "/"
	}
	return b, nil
}

func (b *bucket) at(key string) *string { return aws.String(b.prefix + key) }

func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	info, _, err := b.head(ctx, key)
	return info, err
}

func (b *bucket) head(ctx context.Context, key string) (Info, *string, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, nil, err
	}
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: b.at(key)})
	if err != nil {
		return Info{}, nil, fmt.Errorf("stat object %s: %w", key, kind(err))
	}
	return Info{
		Key:         key,
		Size:        aws.ToInt64(out.ContentLength),
		ModTime:     aws.ToTime(out.LastModified).UTC(),
		ContentType: aws.ToString(out.ContentType),
		version:     aws.ToString(out.ETag),
	}, out.ETag, nil
}

func (b *bucket) Get(ctx context.Context, key string) (*Object, error) {
	info, etag, err := b.head(ctx, key)
	if err != nil {
		return nil, err
	}
	return &Object{info, &s3Reader{ctx: ctx, bucket: b, key: key, etag: etag, size: info.Size}}, nil
}

func (b *bucket) GetRange(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, errs.Invalid("offset is negative")
	}
	if length == 0 { // not possible with a Range header
		if _, err := b.Stat(ctx, key); err != nil {
			return nil, err
		}
		return http.NoBody, nil
	}
	return b.read(ctx, key, nil, offset, length)
}

// read opens a part of an object. With an ETag, it returns Precondition if the
// object was replaced.
func (b *bucket) read(ctx context.Context, key string, etag *string, offset, length int64) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	in := &s3.GetObjectInput{Bucket: &b.name, Key: b.at(key), IfMatch: etag}
	switch {
	case length >= 0 && length <= math.MaxInt64-offset:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		if status(err) == http.StatusRequestedRangeNotSatisfiable {
			return http.NoBody, nil // offset is at or after the end
		}
		return nil, fmt.Errorf("read object %s: %w", key, kind(err))
	}
	if in.Range != nil && out.ContentRange == nil {
		out.Body.Close()
		return nil, fmt.Errorf("read object %s: the server ignores ranges", key)
	}
	return objectBody{out.Body}, nil
}

// objectBody is the content of an object. If the store closes the connection, Read
// returns Unavailable, so that callers do not confuse it with an interrupted request
// of a client.
type objectBody struct{ io.ReadCloser }

func (b objectBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !ended(err) {
		err = errs.Unavailable("the object storage closed the connection early").Because(err)
	}
	return n, err
}

// s3Reader reads an object and can seek. It requests the content at the first Read,
// so that Get without Read transfers nothing.
type s3Reader struct {
	ctx    context.Context
	bucket *bucket
	key    string
	etag   *string
	size   int64
	offset int64
	body   io.ReadCloser // content from offset; may be nil
}

func (r *s3Reader) Read(p []byte) (int, error) {
	if r.offset >= r.size {
		return 0, io.EOF
	}
	if r.body == nil {
		body, err := r.bucket.read(r.ctx, r.key, r.etag, r.offset, -1)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	r.offset += int64(n)
	if err == io.EOF && r.offset < r.size {
		err = errs.Unavailable("the object storage closed the connection early").Because(io.ErrUnexpectedEOF)
	}
	return n, err
}

func (r *s3Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, errors.New("seek in object: no such place")
	}
	if offset != r.offset {
		r.Close()
	}
	r.offset = offset
	return offset, nil
}

func (r *s3Reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: b.at(key)})
	if err = kind(err); err != nil && !errs.Is(err, errs.KindNotFound) {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	return nil
}

func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, err)
			return
		}
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: b.at(prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Info{}, fmt.Errorf("list objects: %w", kind(err)))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
				if CheckKey(key) != nil {
					continue // a directory marker of another program
				}
				info := Info{Key: key, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified).UTC()}
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

func (b *bucket) URL(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	in := &s3.GetObjectInput{Bucket: &b.name, Key: b.at(key)}
	out, err := s3.NewPresignClient(b.client).PresignGetObject(ctx, in, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", fmt.Errorf("sign address of object %s: %w", key, kind(err))
	}
	return out.URL, nil
}

// UploadURL implements Store. It signs the Content-Length, so that the store rejects
// an upload of another size.
func (b *bucket) UploadURL(ctx context.Context, key string, size int64, ttl time.Duration) (string, map[string]string, error) {
	if err := CheckKey(key); err != nil {
		return "", nil, err
	}
	if err := checkTTL(ttl); err != nil {
		return "", nil, err
	}
	in := &s3.PutObjectInput{Bucket: &b.name, Key: b.at(key), ContentLength: &size, ContentType: aws.String(defaultType)}
	out, err := s3.NewPresignClient(b.client).PresignPutObject(ctx, in, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", nil, fmt.Errorf("sign address of object %s: %w", key, kind(err))
	}
	return out.URL, map[string]string{"Content-Type": defaultType}, nil
}

func (b *bucket) Copy(ctx context.Context, from Info, to string) error {
	if err := CheckKey(from.Key); err != nil {
		return err
	}
	if err := CheckKey(to); err != nil {
		return err
	}
	in := &s3.CopyObjectInput{Bucket: &b.name, Key: b.at(to), CopySource: aws.String(copySource(b.name + "/" + *b.at(from.Key)))}
	if from.version != "" {
		in.CopySourceIfMatch = &from.version
	}
	if _, err := b.client.CopyObject(ctx, in); err != nil {
		return fmt.Errorf("copy object %s to %s: %w", from.Key, to, kind(err))
	}
	return nil
}

// copySource escapes the source of a copy, except slashes. Both "+" and spaces are
// percent-encoded, because some servers decode "+" as a space.
func copySource(name string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(name))
}

func (b *bucket) Ping(ctx context.Context) error {
	_, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.name})
	if err != nil {
		return errs.Unavailable("the object storage is not available").Because(fmt.Errorf("head bucket %s: %w", b.name, err))
	}
	return nil
}

func (b *bucket) Close() error {
	if c, ok := b.http.(*http.Client); ok {
		c.CloseIdleConnections()
	}
	return nil
}

// kind converts the error of a response to an error with a kind. Other errors, such
// as rejected credentials, are returned as internal errors.
func kind(err error) error {
	if err == nil || ended(err) {
		return err
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "NoSuchBucket" {
		return errs.Unavailable("the object storage has no such bucket").Because(err)
	}
	if full(err) {
		return errs.StorageFull(err)
	}
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, unread := errors.AsType[*smithy.DeserializationError](err)
	switch code := status(err); {
	case code == http.StatusNotFound:
		return errs.NotFound("").Because(err)
	case code == http.StatusPreconditionFailed:
		return errs.Precondition("the object was replaced").Because(err)
	case code == http.StatusConflict:
		return errs.Conflict("the object conflicts with another key, or is being changed").Because(err)
	case unsent, unread, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return errs.Unavailable("the object storage does not answer").Because(err)
	}
	return err
}

// writeKind is like kind, for writes: NotFound means that the store has lost the
// multipart upload.
func writeKind(err error) error {
	err = kind(err)
	if errs.Is(err, errs.KindNotFound) {
		return errs.Unavailable("the object storage has lost the upload").Because(err)
	}
	return err
}

// ended reports whether an error is the end of the caller's context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// full reports whether an error means that a store has no space left: the status
// 507, or an error code of a known server.
func full(err error) bool {
	if status(err) == http.StatusInsufficientStorage {
		return true
	}
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	switch e.ErrorCode() {
	case "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "StorageFull", "InsufficientStorage":
		return true
	}
	return false
}

// status returns the HTTP status of an error response, or 0.
func status(err error) int {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return e.HTTPStatusCode()
	}
	return 0
}
