// Package hear measures the inbox and the gate of package inbox: how many deliveries become durable
// per second, how long each waits for that, and how many the gate judges per second, beside a bare
// insert of the same rows.
package hear
