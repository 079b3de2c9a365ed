//go:build !linux

package coordinator_test

import "errors"

func mount(string, string) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
