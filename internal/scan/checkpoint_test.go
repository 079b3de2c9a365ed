package scan

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// Checkpoints stand in amends_scans, where the next version of a program reads them: their names
// never change, and a scan that goes on from one that it cannot read would start over.
func TestCheckpointsAreAFormat(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	for want, doc := range map[string]any{
		`{"watermarkAt":"2026-03-01T12:00:01Z","clockAheadNanos":"9007199254740993","tiedAt":"2026-03-01T12:00:02Z",` +
			`"listedFromAt":"2026-03-01T12:00:03Z","emptyAt":"2026-03-01T12:00:04Z",` +
			`"fullScanWanted":{"reason":"a page too small","wantedAt":"2026-03-01T12:00:05Z"},` +
			`"sync":{"startedAt":"2026-03-01T12:00:06Z","changedFromAt":"2026-03-01T12:00:07Z","changedUntil":"2026-03-01T12:00:08Z",` +
			`"cursor":"c","pageLimit":9,"pageDigest":"01000000000000000000000000000000","lastChangedAt":"2026-03-01T12:00:10Z",` +
			`"newestChangedAt":"2026-03-01T12:00:11Z","seen":12,"unordered":true,"failedRuns":13},"writer":"w"}`: cursor{
			WatermarkAt: at(1), Ahead: 1<<53 + 1, TiedAt: at(2), ListedFromAt: at(3), EmptyAt: at(4), FullScanWanted: &wanted{"a page too small", at(5)},
			Sync: &pass{
				StartedAt: at(6), ChangedFromAt: at(7), ChangedUntil: at(8), Cursor: "c", PageLimit: 9, PageDigest: intake.Digest{1},
				LastChangedAt: at(10), NewestChangedAt: at(11), Seen: 12, Unordered: true, FailedRuns: 13,
			},
			Writer: "w",
		},
		`{"scan":3,"running":true,"mappingVersion":"v2","startedAt":"2026-03-01T12:00:01Z","lastComplete":{"scan":2,` +
			`"startedAt":"2026-03-01T12:00:02Z","endedAt":"2026-03-01T12:00:03Z","rows":4,"partitions":5,"mappingVersion":"v1"},` +
			`"previousRows":6,"writer":"w"}`: generation{
			Scan: 3, Running: true, MappingVersion: "v2", Started: at(1),
			LastComplete: &Complete{Scan: 2, Started: at(2), Ended: at(3), Rows: 4, Partitions: 5, MappingVersion: "v1"}, PreviousRows: 6, Writer: "w",
		},
		`{"scan":3,"cursor":"c","pageDigest":"01000000000000000000000000000000","expectedCount":4,"seen":5,"unmarked":6,` +
			`"listed":true,"complete":true,"countAtEnd":7,"failedRuns":8,"error":"e","writer":"w"}`: part{
			Scan: 3, Cursor: "c", PageDigest: intake.Digest{1}, ExpectedCount: 4, Seen: 5, Unmarked: 6,
			Listed: true, Complete: true, CountAtEnd: 7, FailedRuns: 8, Error: "e", Writer: "w",
		},
	} {
		got, err := json.Marshal(doc)
		if err != nil || string(got) != want {
			t.Errorf("stored as\n%s (%v)\nwant\n%s", got, err, want)
		}
		back := reflect.New(reflect.TypeOf(doc))
		if err := json.Unmarshal([]byte(want), back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), doc) {
			t.Errorf("reads back as\n%+v (%v)\nwant\n%+v", back.Elem(), err, doc)
		}
		for i, v := 0, reflect.ValueOf(doc); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not in this test", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}
