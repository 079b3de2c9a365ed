package amendsprom

import (
	"strings"
	"sync"
)

const (
	most  = 1000 // label sets of one metric
	kept  = 980  // of them have names; the rest is for what comes under other, by direction, status and the like
	other = "other"
)

// labels are the values of a metric's labels. Those that are names come first.
type labels [4]string

// few replaces the names in label sets by other once there are many.
type few struct {
	names int // so many of the labels are names, which can be many

	mu    sync.Mutex
	known map[labels]struct{}
}

func newFew(names int) *few { return &few{names: names, known: make(map[labels]struct{})} }

// of is the label set under which values are counted.
func (f *few) of(values ...string) []string {
	var l labels
	for i, v := range values {
		l[i] = label(v)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.known[l]; !known {
		if len(f.known) < kept {
			f.known[l] = struct{}{}
		} else {
			l = l.others(f.names)
		}
	}
	return l[:len(values)]
}

// others are l with its names replaced.
func (l labels) others(names int) labels {
	for i := range names {
		l[i] = other
	}
	return l
}

// label is s as Prometheus takes it.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
