package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"svc/internal/errs"
)

// Foreign is an object in the bucket of a user, outside of the Store.
type Foreign struct {
	Region    string `json:"region"`
	Bucket    string `json:"bucket"`
	Key       string `json:"key"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	Endpoint  string `json:"endpoint,omitempty"` // with path-style URLs; empty for that of AWS in the region
}

// maxForeignKey is the maximum length of keys in S3.
const maxForeignKey = 1024

var (
	foreignRegion = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$`)
	foreignBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	foreignSecret = regexp.MustCompile(`^[!-~]{1,256}$`)
)

// Check returns Invalid for a value that S3 does not allow. Region and bucket become
// parts of the host name, so nothing else may be in them.
func (f Foreign) Check() error {
	wrong := errs.Fields{}
	for _, c := range []struct {
		name, value string
		ok          bool
	}{
		{"region", f.Region, foreignRegion.MatchString(f.Region)},
		{"bucket_name", f.Bucket, foreignBucket.MatchString(f.Bucket) && !strings.Contains(f.Bucket, "..")},
		{"file_key", f.Key, len(f.Key) <= maxForeignKey && !strings.ContainsFunc(f.Key, func(r rune) bool { return r < ' ' || r == 0x7f })},
		{"access_key_id", f.AccessKey, foreignSecret.MatchString(f.AccessKey)},
		{"secret_access_key", f.SecretKey, foreignSecret.MatchString(f.SecretKey)},
	} {
		if c.value == "" {
			wrong.Set(c.name, "can't be blank")
		} else if !c.ok {
			wrong.Set(c.name, "is invalid")
		}
	}
	return wrong.Err()
}

// OpenForeign opens an object in the bucket of a user with their access key, and returns
// its size. It uses no credentials of the server, and sends its requests with client.
// Invalid if S3 refuses; Unavailable if it does not answer. The texts are for the user.
func OpenForeign(ctx context.Context, f Foreign, client *http.Client) (io.ReadCloser, int64, error) {
	options := s3.Options{
		Region: f.Region, HTTPClient: client, RetryMaxAttempts: 1,
		Credentials:                credentials.NewStaticCredentialsProvider(f.AccessKey, f.SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if f.Endpoint != "" {
		options.BaseEndpoint, options.UsePathStyle = &f.Endpoint, true
	}
	out, err := s3.New(options).GetObject(ctx, &s3.GetObjectInput{Bucket: &f.Bucket, Key: &f.Key})
	if err != nil {
		return nil, 0, foreignError(ctx, err)
	}
	if out.ContentLength == nil || *out.ContentLength < 0 {
		out.Body.Close()
		return nil, 0, errs.Invalid("S3 did not send the size of the file.")
	}
	return out.Body, *out.ContentLength, nil
}

func foreignError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code := ""
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	switch at := status(err); {
	case code == "InvalidAccessKeyId":
		return errs.Invalid("S3 refused the access key: it does not exist.").Because(err)
	case code == "NoSuchBucket":
		return errs.Invalid("S3 has no such bucket.").Because(err)
	case at == http.StatusNotFound:
		return errs.Invalid("The bucket has no such file, or not for this access key.").Because(err)
	case at == http.StatusForbidden || at == http.StatusUnauthorized:
		return errs.Invalid("S3 refused the access key, or it may not read the file (HTTP %d).", at).Because(err)
	case at >= 300 && at < 400:
		return errs.Invalid("S3 redirects to another address (HTTP %d). Check the region of the bucket.", at).Because(err)
	case at >= 400 && at < 500 && at != http.StatusTooManyRequests && at != http.StatusRequestTimeout:
		return errs.Invalid("S3 answered with HTTP %d.", at).Because(err)
	case at != 0:
		return errs.Unavailable("S3 answered with HTTP %d.", at).Because(err)
	}
	return fmt.Errorf("send request to S3: %w", err)
}
