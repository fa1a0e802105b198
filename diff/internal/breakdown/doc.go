// Package breakdown says where a change comes from: its split into classes, categories, kernels and causes of idle
// time, what is done differently, and the sentence that sums it up. The parts sum to the change, whether or not the
// change is real.
//
// Example: a kernel ran 10 times for 100 ns in all and now runs 12 times for 180 ns, a change of 80 ns. Running more
// often accounts for (12 - 10) · (10 + 15) / 2 = 25 ns, at the mean of both times per call; taking longer accounts for
// the other 55 ns.
package breakdown
