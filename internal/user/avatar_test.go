package user

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/errs"
)

func pngImage(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, flat(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func flat(width, height int) image.Image {
	return image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})
}

// webpImage is the start of an image of one of the three forms.
func webpImage(form string, width, height int) []byte {
	b := make([]byte, 40)
	copy(b, "RIFF")
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	copy(b[8:], "WEBP"+form)
	switch body := b[20:]; form {
	case "VP8 ":
		copy(body[3:], []byte{0x9d, 0x01, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
	case "VP8L":
		body[0] = 0x2f
		binary.LittleEndian.PutUint32(body[1:], uint32(width-1)|uint32(height-1)<<14)
	case "VP8X":
		w, h := width-1, height-1
		copy(body[4:], []byte{byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
	}
	return b
}

func TestInspectImage(t *testing.T) {
	t.Parallel()
	var asJPEG, asGIF bytes.Buffer
	if err := errors.Join(jpeg.Encode(&asJPEG, flat(3, 2), nil), gif.Encode(&asGIF, flat(3, 2), nil)); err != nil {
		t.Fatal(err)
	}
	asPNG := pngImage(t, 3, 2)
	for _, c := range []struct {
		name      string
		image     []byte
		extension string
		problem   string
	}{
		{"png", asPNG, ".png", ""},
		{"jpeg", asJPEG.Bytes(), ".jpg", ""},
		{"gif", asGIF.Bytes(), ".gif", ""},
		{"lossy webp", webpImage("VP8 ", 640, 480), ".webp", ""},
		{"lossless webp", webpImage("VP8L", 8192, 1), ".webp", ""},
		{"extended webp", webpImage("VP8X", 1, 8192), ".webp", ""},
		{"largest png", pngImage(t, 8192, 1), ".png", ""},
		{"wide png", pngImage(t, 8193, 1), "", "too large"},
		{"high png", pngImage(t, 1, 8193), "", "too large"},
		{"wide lossy webp", webpImage("VP8 ", 8193, 1), "", "too large"},
		{"wide lossless webp", webpImage("VP8L", 8193, 1), "", "too large"},
		{"high extended webp", webpImage("VP8X", 1, 1<<20), "", "too large"},
		{"webp of no size", webpImage("VP8 ", 0, 4), "", "not a valid image"},
		{"cut png", asPNG[:20], "", "not a valid image"},
		{"cut webp", webpImage("VP8L", 3, 2)[:22], "", "not a valid image"},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "", "not supported"},
		{"html", []byte(`<!doctype html><script>alert(1)</script>`), "", "not supported"},
		{"tiff", []byte("II*\x00aaaaaaaaaaaaaaaa"), "", "not supported"},
		{"empty", nil, "", "not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kind, problem := inspectImage(c.image)
			if kind.extension != c.extension || !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
				t.Errorf("%+v, %q", kind, problem)
			}
		})
	}
}

func FuzzInspectImage(f *testing.F) {
	f.Add(pngImage(f, 3, 2))
	for _, form := range []string{"VP8 ", "VP8L", "VP8X"} {
		f.Add(webpImage(form, 3, 2))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if kind, problem := inspectImage(b); (kind.extension == "") != (problem != "") {
			t.Errorf("%+v, %q", kind, problem)
		}
	})
}

func TestAvatar(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		_, byBob := b.user("bob")
		_, byBoss := b.admin("boss")
		file := func(name string, image []byte) *AvatarFile {
			return &AvatarFile{Name: name, Data: bytes.NewReader(image)}
		}
		stored := func() (keys []string) {
			for info, err := range b.Blobs.List(ctx, "avatars/") {
				b.ok(err)
				keys = append(keys, info.Key)
			}
			return keys
		}
		small, other := pngImage(b.t, 2, 2), pngImage(b.t, 3, 3)

		_, err := b.SetAvatar(ctx, byAda, ada.ID, file("big.png", append(small, make([]byte, maxAvatar)...)))
		b.wrong(err, "avatar", "is too big (should be at most 200 KiB)")
		_, err = b.SetAvatar(ctx, byBob, ada.ID, file("a.png", small))
		b.refused(err, errs.KindNotFound)
		_, err = b.SetAvatar(ctx, byBoss, 999_999, file("a.png", small))
		b.refused(err, errs.KindNotFound)
		if keys := stored(); len(keys) != 0 {
			b.t.Fatalf("refused files are stored: %v", keys)
		}

		u, err := b.SetAvatar(ctx, byAda, ada.ID, file("../../My face.svg", small))
		b.ok(err)
		first := u.Avatar
		if !strings.HasPrefix(first, "Myface-") || !strings.HasSuffix(first, ".png") {
			b.t.Errorf("name %q", first)
		}
		o, err := b.OpenAvatar(ctx, ada.ID, first)
		b.ok(err)
		got, err := io.ReadAll(o)
		b.ok(errors.Join(err, o.Close()))
		if !bytes.Equal(got, small) || o.ContentType != "image/png" {
			b.t.Errorf("%d bytes of %s", len(got), o.ContentType)
		}

		u, err = b.SetAvatar(ctx, byBoss, ada.ID, file("../../My face.svg", other))
		b.ok(err)
		b.event("user_avatar_updated")
		if keys := stored(); u.Avatar == first || len(keys) != 1 || keys[0] != avatarKey(ada.ID, u.Avatar) {
			b.t.Errorf("avatar %q, files %v", u.Avatar, keys)
		}
		for _, name := range []string{first, "", "x/../" + u.Avatar} {
			_, err = b.OpenAvatar(ctx, ada.ID, name)
			b.refused(err, errs.KindNotFound)
		}

		for range 2 {
			u, err = b.RemoveAvatar(ctx, byAda, ada.ID)
			b.ok(err)
		}
		if keys := stored(); u.Avatar != "" || len(keys) != 0 {
			b.t.Errorf("avatar %q, files %v", u.Avatar, keys)
		}
		_, err = b.RemoveAvatar(ctx, actor.Actor{}, ada.ID)
		b.refused(err, errs.KindUnauthorized)
	})
}
