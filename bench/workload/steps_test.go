package workload

import (
	"strings"
	"testing"
)

// A saga whose step was skipped, or ran twice, is found; external ids are 20 bytes.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		steps []int
		want  string
	}{
		"all once": {[]int{0, 1, 2, 3}, ""},
		"skipped":  {[]int{0, 1, 2}, `"receipt" ran 0 times`},
		"repeated": {[]int{0, 1, 1, 2, 3}, `"invoice" ran 2 times`},
	} {
		t.Run(name, func(t *testing.T) {
			s, free := NewSteps(12_345_678, 1)
			defer free()
			for _, step := range c.steps {
				if id := s.Do(12_345_678, step); len(id) != 20 {
					t.Errorf("external id %q has %d bytes, want 20", id, len(id))
				}
			}
			if err := s.Verify(1); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
