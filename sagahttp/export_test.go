package sagahttp

// WaitOf is retryAfter.
var WaitOf = retryAfter
