// Package drifting measures how long a reconciler takes from listings that are at hand to a stored
// plan: millions of objects, their documents and their works, of which one in a thousand differs.
//
// Listings and works are written by SQL, in bulk. So the works have heads and no chains, but for
// those that a reconciler looks at: these are adopted by a coordinator. A third of what differs has
// no document and no work, a third a document and no work, and a third a document of an older
// version. The two systems that are asked about it answer at once, from memory, and settle at once.
package drifting
