package blob_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"svc/internal/blob"
	"svc/internal/blob/blobtest"
)

func open(t testing.TB, address, dataDir string) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), address, dataDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// These tests are not parallel, because the suite measures memory.

func TestDisk(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, "", t.TempDir()) })
}

func TestS3(t *testing.T) {
	address := blobtest.S3(t)
	var stores atomic.Int64
	blobtest.Run(t, func(t *testing.T) blob.Store {
		return open(t, fmt.Sprintf("%s&prefix=store/%d", address, stores.Add(1)), "")
	})
}
