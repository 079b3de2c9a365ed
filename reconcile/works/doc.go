// Package works shows a ledger to a reconciler: where the works of one saga stand, by natural key, which is the work
// id. It carries out what a reconciler wants of them through a coordinator: adopting, running again, waking.
//
// A work counts as live for as long as it moves by itself, and also when it has ended and was told something that no
// coordinator has heard yet: a start with a newer revision is a promise. It is overdue when nothing has happened for
// longer than [Config.Overdue] since it was due, by the database's clock.
package works
