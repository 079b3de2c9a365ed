package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"
)

// roleVariable tells a process started by the supervisor what it is; placeVariable where everything is.
const (
	roleVariable  = "AMENDS_EXAMPLE_ROLE"
	placeVariable = "AMENDS_EXAMPLE_PLACE"
)

// supervisor keeps a fixed number of processes of one role alive, and kills them when it is told to. A kill is
// SIGKILL: nothing is closed, flushed or said goodbye to.
type supervisor struct {
	role  string
	place place
	log   io.Writer // what the processes print

	mu       sync.Mutex
	running  []*exec.Cmd
	kills    int
	restarts int
	failed   error
	stopping bool
	wait     sync.WaitGroup
}

// start brings n processes up.
func (s *supervisor) start(ctx context.Context, n int) error {
	s.running = make([]*exec.Cmd, n)
	for i := range n {
		if err := s.spawn(ctx, i); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	return nil
}

// spawn starts process i and, when it ends before the supervisor stops, starts it again.
func (s *supervisor) spawn(ctx context.Context, i int) error {
	cmd, err := s.command(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a %s process: %w", s.role, err)
	}
	s.running[i] = cmd
	s.wait.Add(1)
	go s.watch(ctx, i, cmd)
	return nil
}

func (s *supervisor) command(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own program: %w", err)
	}
	where, err := json.Marshal(s.place)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+s.role, placeVariable+"="+string(where))
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd, nil
}

// watch waits for process i. One that was killed is started again; one that gave up by itself ends the run.
func (s *supervisor) watch(ctx context.Context, i int, cmd *exec.Cmd) {
	defer s.wait.Done()
	err := cmd.Wait()
	killed := cmd.ProcessState != nil && !cmd.ProcessState.Exited()
	s.mu.Lock()
	s.running[i] = nil
	again := killed && !s.stopping && ctx.Err() == nil
	if again {
		s.restarts++
	}
	if !killed && err != nil && !s.stopping {
		s.failed = errors.Join(s.failed, fmt.Errorf("a %s process ended: %w", s.role, err))
	}
	s.mu.Unlock()
	if again {
		if err := s.spawn(ctx, i); err != nil {
			s.mu.Lock()
			s.failed = errors.Join(s.failed, err)
			s.mu.Unlock()
		}
	}
}

// kill ends one running process, chosen by r, with SIGKILL. It reports whether there was one.
func (s *supervisor) kill(r *rand.Rand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var alive []*exec.Cmd
	for _, cmd := range s.running {
		if cmd != nil {
			alive = append(alive, cmd)
		}
	}
	if len(alive) == 0 || alive[r.IntN(len(alive))].Process.Kill() != nil {
		return false
	}
	s.kills++
	return true
}

// done reports whether every process ended by itself, and why if it should not have.
func (s *supervisor) done() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cmd := range s.running {
		if cmd != nil {
			return false, s.failed
		}
	}
	return true, s.failed
}

// stop asks every process to end and waits for it.
func (s *supervisor) stop() error {
	s.mu.Lock()
	s.stopping = true
	for _, cmd := range s.running {
		if cmd != nil {
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended meanwhile
		}
	}
	s.mu.Unlock()
	s.wait.Wait()
	return s.failed
}

func (s *supervisor) counts() (kills, restarts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills, s.restarts
}
