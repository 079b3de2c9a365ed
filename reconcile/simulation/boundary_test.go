package simulation

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// "Process kill at every statement boundary: restart converges; no effect twice". One small
// world is run again and again; in the n-th run the process is crashed at its n-th boundary, until
// a run passes untouched.
func TestCrashAtEveryBoundary(t *testing.T) {
	crashes := 0
	for n := int64(1); ; n++ {
		survived := false
		synctest.Test(t, func(t *testing.T) {
			s := newScene(7, size{objects: 9, deliveries: 60}, time.Now())
			s.calmDown()
			s.poll = 10 * time.Second // idle rounds have boundaries too
			s.works.chance = rand.New(rand.NewPCG(7, 7))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range s.mail.deliveries { // all of it waits when the process begins
				if err := s.store.Accept(ctx, []intake.Event{s.mail.deliveries[i].event}); err != nil {
					t.Fatal(err)
				}
			}
			_ = pause(ctx, span+time.Hour)
			p := start(ctx, s, n)
			select {
			case <-p.done:
				crashes++
			case <-time.After(time.Minute):
				survived = true
				p.crash()
				<-p.done
			}
			after := start(ctx, s, 0)
			_ = pause(ctx, 10*time.Minute)
			after.crash()
			<-after.done
			v, err := s.judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, list := range [][]string{v.different, v.works, v.unfinished, s.gate.broken, s.works.broken} {
				for _, broken := range list {
					t.Errorf("crashed at boundary %d: %s", n, broken)
				}
			}
		})
		if survived || t.Failed() {
			break
		}
	}
	t.Logf("%d crashes, one at each boundary", crashes)
	if crashes < 50 {
		t.Errorf("there were only %d boundaries", crashes)
	}
}
