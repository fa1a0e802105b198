// Package breakdown says where a change comes from: its split into classes, categories, kernels and causes of idle
// time, what is done differently, and the sentence that sums it up. Its parts add up to the change, whether that is
// real or not.
//
// A kernel that ran 10 times for 100 ns in all and now runs 12 times for 180 ns changed by 80 ns. Of these (12 - 10) ·
// (10 + 15) / 2 = 25 ns are from running more often, at the mean of both times per call, and the other 55 ns from
// taking longer.
package breakdown
