package memory

// Counters is how many counters of duplicates are kept.
func (db *DB) Counters() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return len(db.duplicates)
}
