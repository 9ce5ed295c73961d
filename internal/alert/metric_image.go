package alert

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/queue"
)

// MetricImage is an image that shows the metric of an alert.
type MetricImage struct {
	ID        int64
	Name      string
	URL       string // of more information; empty without
	URLText   string
	CreatedAt time.Time

	alertID   int64
	projectID int64
	secret    string
}

// Path is where the image is served.
func (m *MetricImage) Path() string {
	return fmt.Sprintf("/uploads/-/system/alert_metric_image/file/%d/%s", m.ID, url.PathEscape(m.Name))
}

// key is the key of the file in the object storage.
func (m *MetricImage) key() string { return imageKey(m.secret) }

func imageKey(secret string) string { return "alert_metric_images/" + secret[:2] + "/" + secret }

const (
	// MaxImageSize is the largest image, in bytes.
	MaxImageSize = 1 << 20
	maxImages    = 100 // of an alert
	maxImageText = 255 // of the URL, its text and the name
)

// imageTypes are the extensions of images that browsers show and that hold no
// script, by their media type.
var imageTypes = map[string][]string{
	"image/png": {".png"}, "image/jpeg": {".jpg", ".jpeg"}, "image/gif": {".gif"}, "image/webp": {".webp"}, "image/bmp": {".bmp"}, "image/x-icon": {".ico"},
}

// MetricImageFields are the fields of an image; nil leaves the current value.
type MetricImageFields struct{ URL, URLText *string }

func (m *MetricImage) apply(f MetricImageFields) error {
	patch.Set(&m.URL, f.URL)
	patch.Set(&m.URLText, f.URLText)
	wrong := errs.Fields{}
	if m.URL != "" {
		u, err := url.Parse(m.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			wrong.Set("url", "must be a valid URL")
		}
	}
	for name, text := range map[string]string{"url": m.URL, "url_text": m.URLText, "file": m.Name} {
		if utf8.RuneCountInString(text) > maxImageText {
			wrong.Set(name, "is too long (maximum is %d characters)", maxImageText)
		}
	}
	return wrong.Err()
}

// AddMetricImage stores an image for an alert, for Developers and above. NotFound;
// Forbidden; Invalid; TooLarge.
func (s *Service) AddMetricImage(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, name string, content io.Reader, f MetricImageFields) (*MetricImage, error) {
	a, in, err := s.changeable(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	m := &MetricImage{Name: path.Base(name), CreatedAt: s.Now(), alertID: a.ID, projectID: in.ID, secret: strings.ToLower(rand.Text())}
	if err := m.apply(f); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(content, MaxImageSize+1))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if len(data) > MaxImageSize {
		return nil, errs.TooLarge("The image is larger than %d bytes.", MaxImageSize)
	}
	if !slices.Contains(imageTypes[http.DetectContentType(data)], strings.ToLower(path.Ext(m.Name))) {
		return nil, errs.InvalidField("file", "is not an image that is supported: bmp, gif, ico, jpeg, png or webp, with the extension of its type")
	}
	if err := roomForImage(ctx, s.DB, a.ID); err != nil {
		return nil, err
	}
	// The file is stored first, because a row must refer to an existing file. If the row
	// is not inserted, the job removes the file.
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, dropUnusedImage{a.ID, m.secret}, queue.Delay(unusedAfter))
	})
	if err != nil {
		return nil, fmt.Errorf("add image: %w", err)
	}
	if _, err := s.Blobs.Put(ctx, m.key(), bytes.NewReader(data), blob.Options{Size: int64(len(data))}); err != nil {
		return nil, fmt.Errorf("store image: %w", err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "alerts", a.ID); err != nil {
			return err
		}
		if err := roomForImage(ctx, tx, a.ID); err != nil { // another one was added meanwhile
			return err
		}
		return insertImage(ctx, tx, m)
	})
	if errs.IsRefusal(err) {
		return nil, errors.Join(err, s.Blobs.Delete(context.WithoutCancel(ctx), m.key()))
	}
	if err != nil {
		return nil, fmt.Errorf("add image: %w", err)
	}
	return m, nil
}

// unusedAfter is the time after which the file of an image without a row is removed. It
// is longer than any upload takes.
const unusedAfter = 24 * time.Hour

// dropUnusedImage is the background job that removes the file of an image without a row.
type dropUnusedImage struct {
	AlertID int64  `json:"alert_id"`
	Secret  string `json:"secret"`
}

// Kind implements queue.Work.
func (dropUnusedImage) Kind() string { return "alert_drop_unused_image" }

func (s *Service) dropUnusedImage(ctx context.Context, w dropUnusedImage) error {
	used, err := imageExists(ctx, s.DB, w.AlertID, w.Secret)
	if err != nil || used {
		return err
	}
	if err := s.Blobs.Delete(ctx, imageKey(w.Secret)); err != nil {
		return fmt.Errorf("drop image: %w", err)
	}
	return nil
}

// roomForImage returns Invalid if an alert has as many images as it may have.
func roomForImage(ctx context.Context, q db.Q, alertID int64) error {
	n, err := countImages(ctx, q, alertID)
	if err != nil {
		return fmt.Errorf("images of alert %d: %w", alertID, err)
	}
	if n >= maxImages {
		return errs.InvalidField("base", "an alert has at most %d images", maxImages)
	}
	return nil
}

// changeable returns an alert to those who may change its images.
func (s *Service) changeable(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Alert, *project.Project, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.AlertPart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	a, err := s.alert(ctx, in, iid)
	return a, in, err
}

// MetricImages lists the images of an alert, the oldest first, for those who see the
// alerts of the project. NotFound; Forbidden.
func (s *Service) MetricImages(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, p db.Paging) (db.Page[*MetricImage], error) {
	in, err := s.watcher(ctx, by, ref)
	if err != nil {
		return db.Page[*MetricImage]{}, err
	}
	a, err := s.alert(ctx, in, iid)
	if err != nil {
		return db.Page[*MetricImage]{}, err
	}
	page, err := listImages(ctx, s.DB, a.ID, p)
	if err != nil {
		return page, fmt.Errorf("images of alert %d: %w", a.ID, err)
	}
	return page, nil
}

// OpenMetricImage returns an image by its ID and name to those who see the alerts of
// its project; the caller closes the file. NotFound.
func (s *Service) OpenMetricImage(ctx context.Context, by actor.Actor, id int64, name string) (*MetricImage, *blob.Object, error) {
	m, err := findImage(ctx, s.DB, id)
	if err != nil {
		return nil, nil, db.NotFound(err, "Image")
	}
	if m.Name != name {
		return nil, nil, errs.NotFound("Image")
	}
	if _, err := s.watcher(ctx, by, project.RefTo(m.projectID)); err != nil {
		return nil, nil, errs.NotFound("Image").Because(err)
	}
	file, err := s.Blobs.Get(ctx, m.key())
	if err != nil {
		return nil, nil, fmt.Errorf("open image %d: %w", m.ID, err)
	}
	return m, file, nil
}

// UpdateMetricImage changes the URL of an image and its text, for Developers and
// above. NotFound; Forbidden; Invalid.
func (s *Service) UpdateMetricImage(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64, f MetricImageFields) (*MetricImage, error) {
	a, _, err := s.changeable(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	m, err := s.image(ctx, s.DB, a, id)
	if err != nil {
		return nil, err
	}
	if err := m.apply(f); err != nil {
		return nil, err
	}
	if err := saveImage(ctx, s.DB, m); err != nil {
		return nil, fmt.Errorf("change image %d: %w", id, err)
	}
	return m, nil
}

// image returns an image of an alert.
func (s *Service) image(ctx context.Context, q db.Q, a *Alert, id int64) (*MetricImage, error) {
	m, err := findImage(ctx, q, id)
	if err != nil {
		return nil, db.NotFound(err, "Metric image")
	}
	if m.alertID != a.ID {
		return nil, errs.NotFound("Metric image")
	}
	return m, nil
}

// DeleteMetricImage removes an image, for Developers and above. NotFound; Forbidden.
func (s *Service) DeleteMetricImage(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) error {
	a, _, err := s.changeable(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := s.image(ctx, tx, a, id)
		if err != nil {
			return err
		}
		if err := deleteImage(ctx, tx, m.ID); err != nil {
			return db.NotFound(err, "Metric image")
		}
		return removal.Add(ctx, s.Queue, tx, m.key())
	})
	if err != nil {
		return fmt.Errorf("delete image %d: %w", id, err)
	}
	return nil
}

// dropAll adds background jobs that remove the files of images.
func (s *Service) dropAll(ctx context.Context, tx *db.Tx, list []*MetricImage) error {
	keys := make([]string, len(list))
	for i, m := range list {
		keys[i] = m.key()
	}
	return removal.Add(ctx, s.Queue, tx, keys...)
}

// ProjectsDeleted adds background jobs that remove the images of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		list, err := findProjectImages(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := s.dropAll(ctx, tx, list); err != nil {
			return err
		}
	}
	return nil
}
