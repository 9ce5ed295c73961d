package user

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/picture"
)

func pngImage(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAvatar(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		_, byBob := b.user("bob")
		_, byBoss := b.admin("boss")
		file := func(name string, image []byte) *picture.File {
			return &picture.File{Name: name, Data: bytes.NewReader(image)}
		}
		stored := func() (keys []string) {
			for info, err := range b.Blobs.List(ctx, "avatars/") {
				b.ok(err)
				keys = append(keys, info.Key)
			}
			return keys
		}
		small, other := pngImage(b.t, 2, 2), pngImage(b.t, 3, 3)

		_, err := b.SetAvatar(ctx, byAda, ada.ID, file("big.png", append(small, make([]byte, picture.MaxSize)...)))
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
		if keys := stored(); u.Avatar == first || len(keys) != 1 || keys[0] != b.avatars().Key(ada.ID, u.Avatar) {
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
