-- +goose Up
-- oldest: 0060

-- The delivery log of a webhook also has the delivery that is repeated later.
CREATE INDEX CONCURRENTLY hook_deliveries_tried ON hook_deliveries (hook_id, id) WHERE NOT waiting OR delivered_at IS NOT NULL;
