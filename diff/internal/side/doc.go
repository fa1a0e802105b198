// Package side holds one side of a comparison: its captures, each a report broken down once, and what each says about
// one kind of unit. It knows nothing of the other side.
//
// A capture has kinds of unit (decode steps of 8 requests, say), a view is one of them with its kernels, calls and
// times, and a sample is one metric over all captures of the side.
package side
