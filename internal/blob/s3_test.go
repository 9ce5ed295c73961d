package blob_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"svc/internal/blob"
	"svc/internal/blob/blobtest"
	"svc/internal/errs"
)

// with returns an address with changed parameters. A parameter with an empty value
// is removed.
func with(t testing.TB, address string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			query.Del(pairs[i])
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func rawClient(t testing.TB, address string) *s3.Client {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(q.Get("endpoint")),
		Region:       q.Get("region"),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(q.Get("access_key"), q.Get("secret_key"), ""),
	})
}

// TestS3Server tests S3 features with a real server.
func TestS3Server(t *testing.T) {
	t.Parallel()
	address := blobtest.S3(t)

	t.Run("prefixes are apart", func(t *testing.T) {
		t.Parallel()
		a, b := open(t, with(t, address, "prefix", "x/a"), ""), open(t, with(t, address, "prefix", "x/a/"), "")
		other := open(t, with(t, address, "prefix", "x/ab"), "")
		put(t, a, "k", "a")
		if info, err := b.Stat(t.Context(), "k"); err != nil || info.Key != "k" {
			t.Errorf("Stat = %+v, %v", info, err)
		}
		for info, err := range other.List(t.Context(), "") {
			t.Errorf("another prefix lists %+v, %v", info, err)
		}
		for info, err := range a.List(t.Context(), "k") {
			if err != nil || info.Key != "k" {
				t.Errorf("List gives %+v, %v", info, err)
			}
		}
		out, err := rawClient(t, address).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("objects"), Key: aws.String("x/a/k")})
		if err != nil || aws.ToString(out.ContentType) != "text/plain" {
			t.Errorf("the object in the bucket: %+v, %v", out, err)
		}
	})

	t.Run("failed uploads leave no parts", func(t *testing.T) {
		t.Parallel()
		address := with(t, address, "prefix", "uploads")
		s := open(t, address, "")
		ctx, cancel := context.WithCancel(t.Context())
		endless := reader(func(p []byte) (int, error) { return len(p), nil })
		bodies := map[string]struct {
			ctx  context.Context
			body io.Reader
			size int64
		}{
			"broken":     {t.Context(), io.MultiReader(io.LimitReader(endless, 20<<20), reader(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })), 0},
			"cancelled":  {ctx, io.MultiReader(io.LimitReader(endless, 20<<20), reader(func([]byte) (int, error) { cancel(); return 0, io.EOF }), endless), 0},
			"wrong size": {t.Context(), io.LimitReader(endless, 20<<20), 21 << 20},
		}
		for name, b := range bodies {
			if _, err := s.Put(b.ctx, "k", b.body, blob.Options{Size: b.size}); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		out, err := rawClient(t, address).ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{
			Bucket: aws.String("objects"), Prefix: aws.String("uploads/"),
		})
		if err != nil || len(out.Uploads) != 0 {
			t.Errorf("%d uploads are left, %v", len(out.Uploads), err)
		}
	})

	t.Run("replaced before the first read", func(t *testing.T) {
		t.Parallel()
		s := open(t, with(t, address, "prefix", "replaced"), "")
		put(t, s, "k", "first")
		o, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		put(t, s, "k", "other")
		if b, err := io.ReadAll(o); !errs.Is(err, errs.KindPrecondition) {
			t.Errorf("read %q, %v; want Precondition", b, err)
		}
	})

	t.Run("deleted before the first read", func(t *testing.T) {
		t.Parallel()
		s := open(t, with(t, address, "prefix", "deleted"), "")
		put(t, s, "k", "text")
		o, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if err := s.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(o); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("read %q, %v; want NotFound", b, err)
		}
	})

	t.Run("no such bucket", func(t *testing.T) {
		t.Parallel()
		s := open(t, strings.Replace(address, "s3://objects", "s3://nothing", 1), "")
		if err := s.Ping(t.Context()); !errs.Is(err, errs.KindUnavailable) || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("Ping: %v", err)
		}
		if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.Options{}); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("Put: %v", err)
		}
	})

	t.Run("wrong secret", func(t *testing.T) {
		t.Parallel()
		const wrong = "not-the-secret-of-this-server"
		s := open(t, with(t, address, "secret_key", wrong), "")
		if err := s.Ping(t.Context()); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("Ping: %v", err)
		}
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.Options{})
		if err == nil || errs.KindOf(err) != 0 || strings.Contains(err.Error(), wrong) {
			t.Errorf("Put: %v, want a fault that hides the secret", err)
		}
		_, err = s.Get(t.Context(), "k")
		if err == nil || errs.KindOf(err) != 0 {
			t.Errorf("Get: %v, want a fault", err)
		}
	})
}

// TestS3Environment reads the credentials from the environment. It cannot be
// parallel, because it sets environment variables.
func TestS3Environment(t *testing.T) {
	address := blobtest.S3(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", u.Query().Get("access_key"))
	t.Setenv("AWS_SECRET_ACCESS_KEY", u.Query().Get("secret_key"))
	t.Setenv("AWS_REGION", "us-east-1")
	s := open(t, with(t, address, "access_key", "", "secret_key", "", "region", ""), "")
	put(t, s, "k", "text")
	if info, err := s.Stat(t.Context(), "k"); err != nil || info.Size != 4 {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}

// TestS3Trouble tests failures with fake servers.
func TestS3Trouble(t *testing.T) {
	t.Parallel()
	head := func(w http.ResponseWriter) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
	}
	fake := func(t *testing.T, get http.HandlerFunc) blob.Store {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			head(w)
			if r.Method == http.MethodHead {
				w.Header().Set("Content-Length", "1000")
				return
			}
			get(w, r)
		}))
		t.Cleanup(server.Close)
		return open(t, fmt.Sprintf("s3://b?endpoint=%s&path_style=true&access_key=a&secret_key=b", server.URL), "")
	}

	t.Run("connection lost", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, strings.Repeat("x", 400))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		o, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if b, err := io.ReadAll(o); !errs.Is(err, errs.KindUnavailable) || len(b) > 400 {
			t.Errorf("%d bytes and %v, want Unavailable", len(b), err)
		}
	})
	t.Run("body too short", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "short") })
		o, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if b, err := io.ReadAll(o); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("%d bytes and %v, want Unavailable", len(b), err)
		}
	})
	t.Run("ranges ignored", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1000)) })
		if _, err := s.GetRange(t.Context(), "k", 10, 10); err == nil {
			t.Error("no error")
		}
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		if _, err := s.GetRange(t.Context(), "k", 0, -1); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("%v, want Unavailable", err)
		}
		if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.Options{}); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("%v, want Unavailable", err)
		}
	})
	t.Run("uploads not read", func(t *testing.T) {
		t.Parallel()
		end := make(chan struct{})
		s := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost { // of an upload in parts
				io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
				return
			}
			if r.Method == http.MethodPut {
				<-end
			}
		})
		t.Cleanup(func() { close(end) })
		blob.SetStall(s, 50*time.Millisecond)
		for _, size := range []int{7 << 20, 20 << 20} {
			_, err := s.Put(t.Context(), "k", strings.NewReader(strings.Repeat("x", size)), blob.Options{})
			if !errs.Is(err, errs.KindUnavailable) || !strings.Contains(err.Error(), "stalled") {
				t.Errorf("%d bytes: %v, want Unavailable", size, err)
			}
		}
	})
	t.Run("answer cut off", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `<?xml version="1.0"?><InitiateMultipartUploadResult><Bucket>b</Bu`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		_, err := s.Put(t.Context(), "k", strings.NewReader(strings.Repeat("x", 20<<20)), blob.Options{})
		if !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("Put: %v, want Unavailable", err)
		}
		for _, err := range s.List(t.Context(), "") {
			if !errs.Is(err, errs.KindUnavailable) {
				t.Errorf("List: %v, want Unavailable", err)
			}
		}
	})
	t.Run("upload forgotten", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.Options{})
		if !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("Put: %v, want Unavailable", err)
		}
	})
	t.Run("client gone", func(t *testing.T) {
		t.Parallel()
		s := fake(t, func(http.ResponseWriter, *http.Request) { t.Error("the store was asked") })
		_, err := s.Put(t.Context(), "k", iotest.ErrReader(io.ErrUnexpectedEOF), blob.Options{})
		if !errors.Is(err, io.ErrUnexpectedEOF) || errs.KindOf(err) != 0 {
			t.Errorf("Put: %v, want the error of the client", err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		s := open(t, fmt.Sprintf("s3://b?endpoint=http://%s&access_key=a&secret_key=b", listener.Addr()), "")
		if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.Options{}); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("Put: %v, want Unavailable", err)
		}
		for _, err := range s.List(t.Context(), "") {
			if !errs.Is(err, errs.KindUnavailable) {
				t.Errorf("List: %v, want Unavailable", err)
			}
		}
	})
	t.Run("silent server", func(t *testing.T) {
		t.Parallel()
		asked := make(chan struct{}, 10)
		s := fake(t, func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		if _, err := s.GetRange(ctx, "k", 0, -1); !errors.Is(err, context.Canceled) || errs.KindOf(err) != 0 {
			t.Errorf("%v, want the context's error", err)
		}
	})
}
