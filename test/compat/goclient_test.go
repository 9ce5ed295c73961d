package compat

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// client returns a client that uses the token as a personal access token.
func (s *server) client(t *testing.T, token string) *gitlab.Client {
	t.Helper()
	c, err := gitlab.NewClient(token, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is the result of a call of the client.
type answer[T any] struct {
	value T
	res   *gitlab.Response
	err   error
}

// ask wraps the results of a call; the methods ok, refused and missing check them.
func ask[T any](value T, res *gitlab.Response, err error) answer[T] {
	return answer[T]{value, res, err}
}

// tell is ask for calls that return no value.
func send(res *gitlab.Response, err error) answer[struct{}] {
	return answer[struct{}]{res: res, err: err}
}

// ok returns the value; the test ends if there is an error.
func (a answer[T]) ok(t *testing.T) T {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.value
}

// done is ok for a call whose response must have a status.
func (a answer[T]) done(t *testing.T, status int) T {
	t.Helper()
	value := a.ok(t)
	if a.res.StatusCode != status {
		t.Errorf("status %d, want %d", a.res.StatusCode, status)
	}
	return value
}

// refused checks that the call failed with the error type of the client, a status
// and a message.
func (a answer[T]) refused(t *testing.T, status int, message string) {
	t.Helper()
	var e *gitlab.ErrorResponse
	switch {
	case a.err == nil:
		t.Errorf("the call went well, want %d", status)
	case !errors.As(a.err, &e):
		t.Errorf("%T %v, want an ErrorResponse with status %d", a.err, a.err, status)
	case !gitlab.HasStatusCode(a.err, status) || e.Message != message:
		t.Errorf("refused with %d %q, want %d %q", e.Response.StatusCode, e.Message, status, message)
	}
}

// missing checks that the call failed with the error of the client for 404.
func (a answer[T]) missing(t *testing.T) {
	t.Helper()
	if !errors.Is(a.err, gitlab.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", a.err)
	}
}

// same compares a value with the expected one.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	days := cmp.Comparer(func(a, b gitlab.ISOTime) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, got, days); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// recent checks that a time is between the start of the test, with some tolerance,
// and now.
func recent(t *testing.T, what string, at *time.Time) {
	t.Helper()
	if at == nil {
		t.Errorf("%s is not set", what)
		return
	}
	if age := time.Since(*at); age < -time.Second || age > 5*time.Minute {
		t.Errorf("%s is %v, which is %v ago", what, at, age)
	}
}

// newUser creates a confirmed user.
func newUser(t *testing.T, root *gitlab.Client, username string) *gitlab.User {
	t.Helper()
	return ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: new(username), Name: new("Name of " + username), Email: new(username + "@example.org"),
		Password: new(password), SkipConfirmation: new(true),
	})).done(t, http.StatusCreated)
}

// newToken creates a personal access token of a user.
func newToken(t *testing.T, root *gitlab.Client, userID int64, scopes ...string) *gitlab.PersonalAccessToken {
	t.Helper()
	return ask(root.Users.CreatePersonalAccessToken(userID, &gitlab.CreatePersonalAccessTokenOptions{
		Name: new(strings.Join(scopes, " ")), Scopes: &scopes,
	})).done(t, http.StatusCreated)
}

// picture returns an image with one color.
func picture(t *testing.T, of color.Color) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		img.Set(i%8, i/8, of)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// served checks that an anonymous request for the URL returns the picture.
func served(t *testing.T, url string, picture []byte) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "image/png" || !bytes.Equal(body, picture) {
		t.Errorf("%s: status %d, type %q, %d bytes; want the picture of %d bytes", url, res.StatusCode, res.Header.Get("Content-Type"), len(body), len(picture))
	}
}
