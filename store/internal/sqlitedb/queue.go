package sqlitedb

import "sync"

// queue is where the writers of one file in this process wait for each other.
type queue struct {
	sync.Mutex

	path  string
	users int // guarded by queues
}

var queues = struct {
	sync.Mutex

	of map[string]*queue
}{of: make(map[string]*queue)}

// join returns the queue of the file at path. Who joins also leaves.
func join(path string) *queue {
	queues.Lock()
	defer queues.Unlock()
	q := queues.of[path]
	if q == nil {
		q = &queue{path: path}
		queues.of[path] = q
	}
	q.users++
	return q
}

func (q *queue) leave() {
	queues.Lock()
	defer queues.Unlock()
	if q.users--; q.users == 0 {
		delete(queues.of, q.path)
	}
}
