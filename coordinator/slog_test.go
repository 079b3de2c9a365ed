package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A program that logs by slog gets every line there, once, with its level and its
// fields as attributes, and at the level that its handler has at that moment.
func TestSlog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var level slog.LevelVar
		level.Set(slog.LevelWarn)
		log := coordinator.Slog(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: &level})))
		p := boot(t, memory.New(nil), &world{}, config{
			opts: coordinator.Options{Log: log, Lease: quick().Lease},
			program: func(*process) saga.Program {
				return flat(t, func(context.Context, saga.Call[order]) (thing, error) {
					return thing{}, saga.Permanent(errors.New("422: no such customer"))
				})
			},
		})
		synctest.Wait() // else the start may be dispatched by the next poll
		begin(t, p, 1)
		synctest.Wait()
		level.Set(slog.LevelDebug)
		begin(t, p, 2)
		synctest.Wait()
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		seen := map[string][]string{}
		for text := range strings.Lines(out.String()) {
			var line struct{ Level, Msg, Work, Error string }
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if names := attributes(t, text); !slices.IsSorted(names) {
				t.Errorf("the attributes come as %q", names)
			}
			if line.Work != "" {
				seen[line.Work] = append(seen[line.Work], line.Level+" "+line.Msg+" "+line.Error)
			}
		}
		refused := "WARN compensated 422: no such customer"
		if got := seen["o00001"]; len(got) != 1 || got[0] != refused {
			t.Errorf("at level warn: %q", got)
		}
		if got := seen["o00002"]; len(got) != 2 || got[0] != "DEBUG started " || got[1] != refused {
			t.Errorf("at level debug: %q", got)
		}
	})
}

// attributes are the names behind time, level and message of a line of JSON, in its order.
func attributes(t *testing.T, line string) (names []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	for first := true; ; first = !first {
		switch token, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return slices.DeleteFunc(names, func(s string) bool { return s == "time" || s == "level" || s == "msg" })
		case err != nil:
			t.Fatalf("%s: %v", line, err)
		case token == json.Delim('{') || token == json.Delim('}'):
			first = false
		case first:
			names = append(names, token.(string))
		}
	}
}
