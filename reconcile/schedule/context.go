package schedule

import "context"

// inRun is the key under which a context carries its run.
type inRun struct{}

// Of returns the run for which ctx was made: the context of a job's work, and every one derived
// from it, has one. Nil: it has none.
func Of(ctx context.Context) *Run {
	r, _ := ctx.Value(inRun{}).(*Run)
	return r
}

// Proceed is [Run.Proceed] of the run for which ctx was made. Without one the work goes on as long
// as ctx does. So what is made once, for many runs, can be told when to stop.
func Proceed(ctx context.Context) error {
	if r := Of(ctx); r != nil {
		return r.Proceed(ctx)
	}
	return context.Cause(ctx)
}
