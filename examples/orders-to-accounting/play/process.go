package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// roleVariable tells a process started by the supervisor what it is, and placeVariable where everything
// is.
const (
	roleVariable  = "AMENDS_EXAMPLE_ROLE"
	placeVariable = "AMENDS_EXAMPLE_PLACE"
)

// patience is how long a process that was asked to end may take.
const patience = 10 * time.Second

// stall is how long a process is stopped: twice the lease of the example.
const stall = 7 * time.Second

// supervisor keeps a fixed number of processes of one role alive, and kills them when it is told to. A
// kill is SIGKILL: the process closes and flushes nothing.
//
// The standard input of each process is a pipe that the supervisor alone holds. Closing the pipe asks
// the process to end. When the supervisor itself is killed, the system closes it.
type supervisor struct {
	role  string
	place Place
	doors []string // where each process listens for webhooks; none: they hear none
	log   *os.File // what the processes print
	once  bool     // ending by itself is the end of the job; otherwise it is started again

	end  context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	running  []*exec.Cmd
	left     int // processes that have not ended for good
	kills    int
	stalls   int
	restarts int
	failed   error
}

// start brings n processes up, until stop or the end of ctx.
func (s *supervisor) start(ctx context.Context, n int) error {
	ctx, s.end = context.WithCancel(ctx)
	s.running, s.left = make([]*exec.Cmd, n), n
	for i := range n {
		if err := s.spawn(ctx, i); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	return nil
}

// spawn starts process i.
func (s *supervisor) spawn(ctx context.Context, i int) error {
	cmd, err := s.command(ctx, i)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a %s process: %w", s.role, err)
	}
	s.running[i] = cmd
	s.wait.Go(func() { s.watch(ctx, i, cmd) })
	return nil
}

func (s *supervisor) command(ctx context.Context, i int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own program: %w", err)
	}
	at := s.place
	if i < len(s.doors) {
		at.Door = s.doors[i]
	}
	where, err := json.Marshal(at) //nolint:gosec // the secret goes to our own child, in its environment
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+s.role, placeVariable+"="+string(where))
	cmd.Stdout, cmd.Stderr = s.log, s.log
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = leash.Close, patience
	return cmd, nil
}

// leashed is the other end of that pipe. The context that it returns ends when the supervisor closes
// our standard input, or has ended itself.
func leashed(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // nothing is ever said there
		cancel()
	}()
	return ctx, cancel
}

// watch waits for process i to end, and starts it again unless its job or its time is over. One that
// failed by itself ends the run.
func (s *supervisor) watch(ctx context.Context, i int, cmd *exec.Cmd) {
	err := cmd.Wait()
	s.mu.Lock()
	s.running[i] = nil
	killed, again := !cmd.ProcessState.Exited(), false
	switch {
	case ctx.Err() != nil:
	case err != nil && !killed:
		s.failed = errors.Join(s.failed, fmt.Errorf("a %s process ended: %w. The end of its log, %s:\n%s", s.role, err, s.log.Name(), tail(s.log.Name())))
	case s.once && !killed:
		s.left--
	default:
		s.restarts++
		again = true
	}
	s.mu.Unlock()
	if !again {
		return
	}
	if err := s.spawn(ctx, i); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = errors.Join(s.failed, err)
	}
}

// tail returns the last lines of a file, each indented.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-8):], "\n  ")
}

// choose returns the number of a running process, or -1.
func (s *supervisor) choose(r *rand.Rand) int {
	var alive []int
	for i, cmd := range s.running {
		if cmd != nil {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		return -1
	}
	return alive[r.IntN(len(alive))]
}

// kill ends one running process, chosen by r, with SIGKILL. It reports whether there was one.
func (s *supervisor) kill(r *rand.Rand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	victim := s.choose(r)
	if victim < 0 || s.running[victim].Process.Kill() != nil {
		return false
	}
	s.running[victim] = nil // so that it is not chosen again
	s.kills++
	return true
}

// stall stops one running process, chosen by r, and has it go on after a while. It reports whether
// there was one.
func (s *supervisor) stall(r *rand.Rand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	victim := s.choose(r)
	if victim < 0 {
		return false
	}
	p := s.running[victim].Process
	if freeze(p) != nil {
		return false
	}
	time.AfterFunc(stall, func() { _ = thaw(p) }) // it may have been killed meanwhile
	s.stalls++
	return true
}

// done reports whether every process has ended by itself, its job done, and why if one should not have.
func (s *supervisor) done() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0, s.failed
}

// stop asks every process to end and waits for it.
func (s *supervisor) stop() error {
	if s.end == nil {
		return nil // never started
	}
	s.end()
	s.wait.Wait()
	_, err := s.done()
	return err
}

// crash ends every process as a power cut does: none is asked, none comes back before start.
func (s *supervisor) crash() error {
	s.end() // before the kills, so that watch starts no process again
	s.mu.Lock()
	for _, cmd := range s.running {
		if cmd != nil {
			_ = cmd.Process.Kill() // it may have ended by itself
		}
	}
	s.mu.Unlock()
	return s.stop()
}

func (s *supervisor) counts() (kills, stalls, restarts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills, s.stalls, s.restarts
}
