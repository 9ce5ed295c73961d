-- +goose Up
-- oldest: 0060

-- The delivery whose receiver made a request, by the UUID that it sends back.
CREATE INDEX CONCURRENTLY hook_deliveries_key ON hook_deliveries (key);
