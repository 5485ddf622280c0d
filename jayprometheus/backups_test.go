package jayprometheus_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/jayprometheus"
	"github.com/prometheus/client_golang/prometheus"
)

// figures returns the metrics of a registry as name=value, sorted.
func figures(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += "{" + l.GetName() + "=" + l.GetValue() + "}"
			}
			all = append(all, fmt.Sprintf("%s%s=%v", strings.TrimPrefix(f.GetName(), "jay_"), labels, m.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Ensure that the figures of backups are those of their Keeper, and that the alarm rises with the time that passes.
func TestBackupsCollector(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time { return now }})
	must(t, err)
	defer db.Close()
	dir := t.TempDir()
	k, err := backups.Open(db, backups.Options{Dir: dir, Now: func() time.Time { return now }, LateAfter: 2 * time.Hour})
	must(t, err)
	defer k.Close()
	registry := registryOf(t, jayprometheus.NewBackupsCollector(k, prometheus.Labels{"database": "shop"}))
	if got, want := figures(t, registry), "backup_broken{database=shop}=0 backup_bytes{database=shop}=0 backup_failures{database=shop}=0 backup_late{database=shop}=0 backup_unsent{database=shop}=0 backups{database=shop}=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	made, err := k.Make(t.Context())
	must(t, err)
	now = now.Add(3 * time.Hour)
	must(t, os.RemoveAll(dir))
	if _, err := k.Make(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is gone: %v", err)
	}
	want := fmt.Sprintf("backup_broken{database=shop}=0 backup_bytes{database=shop}=%v backup_failures{database=shop}=1 backup_last_seconds{database=shop}=%v backup_late{database=shop}=1 backup_unsent{database=shop}=0 backups{database=shop}=1",
		float64(made.Bytes), float64(made.Created.Unix()))
	if got := figures(t, registry); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func ExampleNewBackupsCollector() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	k, err := backups.Open(db, backups.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(jayprometheus.NewBackupsCollector(k, nil))
	families, err := registry.Gather()
	fmt.Println(families[len(families)-1].GetName(), err)
	// Output: jay_backups <nil>
}
