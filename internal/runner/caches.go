package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cacheTime is how long an unused cache is kept.
const cacheTime = 30 * 24 * time.Hour

// cachePath returns the path of the file of a cache. The name is a hash of the key,
// because a key may be any text.
func (j *job) cachePath(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(j.r.cacheDir(), strconv.FormatInt(j.JobInfo.ProjectID, 10), hex.EncodeToString(sum[:16])+".zip")
}

// protectedSuffix ends the keys of caches of protected refs. The server appends
// it to the keys of a job, but not to CACHE_FALLBACK_KEY, which jobs of other
// refs set freely.
const protectedSuffix = "-protected"

// restoreCaches unpacks the caches of the job. Missing caches are not an error.
func (j *job) restoreCaches() error {
	for _, c := range j.Cache {
		key := j.vars.expand(c.Key)
		if c.Policy == "push" {
			j.say("Cache %s is only saved by this job", key)
			continue
		}
		keys := append([]string{key}, j.vars.expandAll(c.FallbackKeys)...)
		switch fallback := j.vars.get("CACHE_FALLBACK_KEY"); {
		case strings.HasSuffix(fallback, protectedSuffix):
			j.warn("CACHE_FALLBACK_KEY is ignored, because it ends in %s", protectedSuffix)
		case fallback != "":
			keys = append(keys, fallback)
		}
		if err := j.restoreCache(keys); err != nil {
			j.warn("cache %s was not restored: %v", key, err)
		}
	}
	return nil
}

// restoreCache unpacks the first existing cache of the keys.
func (j *job) restoreCache(keys []string) error {
	for _, key := range keys {
		path := j.cachePath(key)
		n, err := unpack(j.main, path, j.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		j.say("Cache %s: %d files and directories", key, n)
		now := j.r.Now()
		return os.Chtimes(path, now, now) // the time of last use, for pruneCache
	}
	j.say("Cache %s does not exist yet", keys[0])
	return nil
}

// saveCaches saves the caches of the job. Failures are logged, but do not fail the
// job.
func (j *job) saveCaches(failed bool) error {
	var wanted []cache
	for _, c := range j.Cache {
		if c.Policy != "pull" && applies(c.When, failed) {
			wanted = append(wanted, c)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return j.section("archive_cache", "Saving the cache", func() error {
		for _, c := range wanted {
			if err := j.saveCache(c); err != nil {
				j.warn("cache %s was not saved: %v", j.vars.expand(c.Key), err)
			}
		}
		return nil
	})
}

func (j *job) saveCache(c cache) error {
	key := j.vars.expand(c.Key)
	files, err := j.collect(selection{paths: j.vars.expandAll(c.Paths), untracked: c.Untracked})
	if err != nil {
		return err
	}
	if len(files) == 0 {
		j.say("Cache %s: there is nothing to save", key)
		return nil
	}
	path := j.cachePath(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// Concurrent readers see the old cache.
	temp := path + ".new-" + random(4)
	err = pack(j.whole, j.dir, files, "zip", temp)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	j.say("Cache %s: saved %d files and directories", key, len(files))
	return nil
}

// halfTime is the maximum age of a partially written cache.
const halfTime = 24 * time.Hour

// pruneCache deletes caches that were not used for a long time, and partially
// written ones.
func (r *Runner) pruneCache() {
	oldest := r.Now().Add(-cacheTime)
	err := filepath.WalkDir(r.cacheDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // renamed by a job
			return nil
		}
		if err != nil {
			return err
		}
		limit := oldest
		if filepath.Ext(path) != ".zip" { // partially written: a job may still be writing it
			limit = r.Now().Add(-halfTime)
		}
		if info.ModTime().Before(limit) {
			return os.Remove(path)
		}
		return nil
	})
	if err != nil {
		r.Log.Warn("cannot remove old caches", "error", fmt.Errorf("prune: %w", err))
	}
}
