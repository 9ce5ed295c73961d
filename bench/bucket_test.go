package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"svc/internal/app"
	"svc/internal/blob"
	"svc/internal/blob/blobtest"
	"svc/internal/config"
	"svc/internal/git/gittest"
	"svc/internal/repo/bucket"
)

// BenchmarkBucket compares a server with repositories in an object store to one with
// repositories in files.
func BenchmarkBucket(b *testing.B) {
	t := &table{}
	address := blobtest.S3(b)
	files := serve(b, "")
	inBucket := serve(b, "", func(c *config.Config) {
		c.BlobURL = config.SecretURL(address)
		c.Buckets = map[string]config.SecretURL{"default": config.OwnBucket}
		c.Storages = map[string]string{"default": filepath.Join(c.DataDir, "git-cache")}
		c.GitCacheSize = 10 << 30
	})
	g := gittest.Generate(b, gittest.Large)
	one, other := newSite(b, files.Addr()), newSite(b, inBucket.Addr())
	for _, s := range []site{one, other} {
		g.Git("push", "-q", s.remote(), "main")
	}
	b.Run("push", func(b *testing.B) { bucketPushes(b, t, one, other) })
	b.Run("read", func(b *testing.B) { bucketReads(b, t, one, other) })
	b.Run("fork", func(b *testing.B) { bucketForks(b, t, files, inBucket, one, other) })
	b.Run("cold", func(b *testing.B) { bucketCold(b, t, inBucket, other) })
	b.Run("many", func(b *testing.B) { bucketMany(b, t, inBucket) })
	t.finish(b)
}

func bucketPushes(b *testing.B, t *table, one, other site) {
	work := filepath.Join(b.TempDir(), "work")
	gittest.Run(b, "", "clone", "-q", "--depth=1", one.remote(), work)
	n := 0
	commit := func(size int) func() {
		return func() {
			n++
			content := make([]byte, size)
			for i := range content {
				content[i] = byte(i * n * 2654435761 >> 7)
			}
			check(b, os.WriteFile(filepath.Join(work, "file"), append(fmt.Append(nil, n), content...), 0o600))
			gittest.Run(b, work, "add", "file")
			gittest.Run(b, work, "commit", "-q", "-m", fmt.Sprint(n))
		}
	}
	push := func(s site) func() {
		return func() { gittest.Run(b, work, "push", "-q", s.remote(), "HEAD:refs/heads/topic") }
	}
	push(one)()
	push(other)()
	duel{15, commit(10), push(one), push(other), 0}.figure(b, t, "push of a small commit", "one to files", 2)
	duel{9, commit(1 << 20), push(one), push(other), 0}.figure(b, t, "push of a commit with 1 MiB", "one to files", 2)
	create := func(s site) func() {
		return func() {
			n++
			check(b, s.post(fmt.Sprintf("projects/%d/repository/files/f%d", s.project, n), `{"branch":"topic","commit_message":"Add","content":"x"}`, &struct{}{}))
		}
	}
	duel{60, nil, create(one), create(other), 0}.figure(b, t, "commit by the API", "one to files", 2)
}

func bucketReads(b *testing.B, t *table, one, other site) {
	clone := func(s site) func() {
		return func() {
			dir := filepath.Join(b.TempDir(), "clone")
			gittest.Run(b, "", "clone", "-q", "--bare", s.remote(), dir)
			check(b, os.RemoveAll(dir))
		}
	}
	duel{5, nil, clone(one), clone(other), 0}.figure(b, t, "clone of a repository in the cache", "one from files", 1.1)
	for _, path := range []string{"repository/tree?ref=main", "repository/commits?ref_name=main", "repository/branches/main"} {
		read := func(s site) func() {
			return func() {
				for range 50 {
					_, err := s.size(path)
					check(b, err)
				}
			}
		}
		duel{7, nil, read(one), read(other), 0}.figure(b, t, "GET "+path, "the same from files", 1.1)
	}
}

// bucketForks forks a large repository. In the bucket, the fork shares its pack.
func bucketForks(b *testing.B, t *table, files, inBucket *app.Server, one, other site) {
	n := 0
	fork := func(s *app.Server, of site) func() {
		return func() {
			n++
			check(b, of.post(fmt.Sprintf("projects/%d/fork", of.project), fmt.Sprintf(`{"name":"fork-%d","path":"fork-%d"}`, n, n), &struct{}{}))
			check(b, s.Queue.Idle(b.Context()))
		}
	}
	check(b, files.Queue.Idle(b.Context()))
	check(b, inBucket.Queue.Idle(b.Context()))
	duel{5, nil, fork(files, one), fork(inBucket, other), 0}.figure(b, t, "fork with its background jobs", "one in files", 1)
}

// bucketCold clones a repository that is not in the cache, and compares the time
// with that of reading its objects from the store plus a clone from the cache.
func bucketCold(b *testing.B, t *table, s *app.Server, of site) {
	get := func() {
		for o, err := range s.Blobs.List(b.Context(), bucket.Prefix) {
			check(b, err)
			getObject(b, s.Blobs, o)
		}
	}
	clone := func() {
		dir := filepath.Join(b.TempDir(), "clone")
		gittest.Run(b, "", "clone", "-q", "--bare", of.remote(), dir)
		check(b, os.RemoveAll(dir))
	}
	clone()
	forget := func() { check(b, os.RemoveAll(filepath.Join(s.Config.Storages["default"], "projects"))) }
	theirs := func() {
		get()
		clone()
	}
	ours := func() {
		forget()
		clone()
	}
	duel{5, nil, theirs, ours, 0}.figure(b, t, "clone of a repository that is not in the cache", "a download and a clone", 1.3)
}

// bucketMany compares a repository with many pushes to one with few pushes.
// BENCH_PUSHES is the number of pushes, 10,000 by default.
func bucketMany(b *testing.B, t *table, s *app.Server) {
	many := 10_000
	if text := os.Getenv("BENCH_PUSHES"); text != "" {
		n, err := strconv.Atoi(text)
		check(b, err)
		many = n
	}
	const files = 50 // the same in both repositories
	n := map[string]int{}
	commit := func(s site) {
		action := "update"
		if n[s.name] < files {
			action = "create"
		}
		n[s.name]++
		file := n[s.name] % files
		body := fmt.Sprintf(`{"action":%q,"file_path":"d%d/f%d","content":"%d"}`, action, file%7, file, n[s.name])
		check(b, s.post(fmt.Sprintf("projects/%d/repository/commits", s.project), `{"branch":"main","commit_message":"Change","actions":[`+body+`]}`, &struct{}{}))
	}
	few, old := newNamedSite(b, s.Addr(), "few"), newNamedSite(b, s.Addr(), "many")
	for _, one := range []struct {
		site
		pushes int
	}{{few, files}, {old, many}} {
		for range one.pushes {
			commit(one.site)
		}
	}
	check(b, s.Queue.Idle(b.Context()))
	against, in := "one after 50", fmt.Sprintf(" after %d", many)
	duel{60, nil, func() { commit(few) }, func() { commit(old) }, 0}.figure(b, t, "commit by the API"+in, against, 1.5)
	work := filepath.Join(b.TempDir(), "work")
	gittest.Run(b, "", "clone", "-q", few.remote(), work)
	change := func() { gittest.Run(b, work, "commit", "-q", "--allow-empty", "-m", "Change") }
	push := func(s site) func() {
		return func() { gittest.Run(b, work, "push", "-q", s.remote(), "HEAD:refs/heads/topic") }
	}
	push(few)()
	push(old)()
	duel{20, change, push(few), push(old), 0}.figure(b, t, "push"+in, against, 1.5)
	read := func(s site) func() {
		return func() {
			for range 50 {
				_, err := s.size("repository/branches/main")
				check(b, err)
			}
		}
	}
	duel{7, nil, read(few), read(old), 0}.figure(b, t, "GET repository/branches/main"+in, against, 1.5)
}

// getObject reads an object completely.
func getObject(b *testing.B, store blob.Store, o blob.Info) {
	in, err := store.GetRange(b.Context(), o.Key, 0, -1)
	check(b, err)
	defer in.Close()
	_, err = io.Copy(io.Discard, in)
	check(b, err)
}
