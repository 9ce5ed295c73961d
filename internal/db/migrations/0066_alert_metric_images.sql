-- +goose Up
-- oldest: 0060

-- Images of metrics that users added to alerts.
CREATE TABLE alert_metric_images (
  id         AUTO_ID,
  alert_id   BIGINT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
  secret     TEXT NOT NULL, -- in the key of the file
  name       TEXT NOT NULL,
  url        TEXT NOT NULL DEFAULT '', -- of more information about the metric
  url_text   TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL
);
CREATE INDEX alert_metric_images_alert_id ON alert_metric_images (alert_id, id);
