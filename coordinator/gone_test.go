package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// shelf holds documents by id, with the version of the order that each shows.
type shelf struct {
	docs map[string]string
	made int
}

func (s *shelf) write(_ context.Context, c saga.Call[order]) (string, error) {
	id := c.PreviousID()
	if _, there := s.docs[id]; id != "" && !there {
		return "", saga.PreviousGone(errors.New("404"))
	}
	if id == "" {
		s.made++
		id = fmt.Sprintf("%s-%d", c.Step, s.made)
	}
	s.docs[id] = c.Revision
	return id, nil
}

func (s *shelf) rewrite(ctx context.Context, c saga.Call[order], _ string) (string, error) {
	return s.write(ctx, c)
}

func (s *shelf) find(_ context.Context, c saga.Call[order]) (saga.Finding[string], error) {
	var ids []string
	for id, revision := range s.docs {
		if strings.HasPrefix(id, c.Step) && (revision == c.Revision || id != c.PreviousID()) {
			ids = append(ids, id)
		}
	}
	return saga.Found(ids...), nil
}

func (s *shelf) remove(_ context.Context, _ saga.Call[order], id string) error {
	delete(s.docs, id)
	return nil
}

// What a rerun promises is kept: a document that was deleted at its destination is made again, once
// the attempt has settled, and nothing is undone for it.
func TestRerunMakesWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, deleted := range []string{"invoice-1", "note-2"} {
		t.Run(deleted, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, s := memory.New(nil), &shelf{docs: map[string]string{}}
				def, err := saga.Define(orderSaga, 1,
					saga.Do("invoice", s.write).Find(s.find).Update(s.rewrite).Undo(s.remove),
					saga.Do("note", s.write).Find(s.find).Update(s.rewrite).Undo(s.remove))
				if err != nil {
					t.Fatal(err)
				}
				p := boot(t, l, &world{}, config{program: func(*process) saga.Program { return def }})
				synctest.Wait()
				p.revise("7", "three lines")
				p.want("o1", saga.Completed, "")
				delete(s.docs, deleted)
				if _, err := p.Rerun(t.Context(), idOf("o1"), "plan 1", anna); err != nil {
					t.Fatal(err)
				}
				pass(2 * time.Minute)
				if sum := p.want("o1", saga.Completed, ""); sum.Revision != "7+1" {
					t.Errorf("it is %+v", sum)
				}
				want := map[string]string{"invoice-1": "7+1", "note-2": "7+1"}
				delete(want, deleted)
				want[strings.TrimRight(deleted, "12")+"3"] = "7+1"
				if !maps.Equal(s.docs, want) {
					t.Errorf("there are %v, want %v", s.docs, want)
				}
				ledgertest.MustCheck(t, l)
			})
		})
	}
}
