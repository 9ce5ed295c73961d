package transfer_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/transfer"
)

// BenchmarkLarge carries a group with 100,000 labels over, and tells how much
// memory is held at most beyond what was held before.
func BenchmarkLarge(b *testing.B) {
	s := apptest.Start(b, dbtest.SQLite(b))
	st := newFixture(b, s)
	top := st.build("top", world{groups: []groupDraw{{settings: project.DraftSettings()}}})
	must(s.DB.ExecContext(b.Context(), manyLabels, 100_000, top.ID))(b)
	for b.Loop() {
		var file []byte
		b.ReportMetric(held(func() { file = st.export(project.RefTo(top.ID)) }), "export-MiB")
		i := st.begin(file, "copy"+time.Now().Format("150405.000000")[7:])
		b.ReportMetric(held(func() { must(0, s.Transfer.RunImport(b.Context(), transfer.ImportWork{ImportID: i.ID}))(b) }), "import-MiB")
		if i = st.look(i); i.State != transfer.Finished || i.Report.Imported.Labels != 100_000 {
			b.Fatalf("%+v", i)
		}
		b.ReportMetric(float64(len(file))/(1<<20), "file-MiB")
	}
}

// held is how much more memory was in use at some time while f ran, in MiB.
func held(f func()) float64 {
	var m runtime.MemStats
	now := func() int64 {
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	runtime.GC()
	before := now()
	var most atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), now()))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(stop)
	<-ended
	return float64(most.Load()-before) / (1 << 20)
}
