// Package mutant makes captures whose change is known: it reads an Nsight Systems SQLite export, applies an edit
// (a kernel family 10 % longer, a new blocking call, a stall in every 8th step, lost events), and writes the
// capture that the changed program would have left, together with the truth about it. Tests of a verdict are made
// of such pairs.
//
//	base, err := mutant.Read(path)
//	err = base.Mark(`^execute_`)                    // or base.FindUnits()
//	head, err := base.Mutate(mutant.ScaleKernels(mutant.On{}, "gemm", 1.1))
//	truth := head.Truth                             // Work, e.g. 1.043: the whole work takes 4.3 % longer
//	path, err = head.WriteTo(t.TempDir())
//
// # The model
//
// Every capture is replayed. In each process:
//
//   - GPU work starts when all work of its device that had ended before it started in the base has ended, after
//     the same gap (at most 1 µs of it where the work waited for its launch call), and not before its launch
//     call's start plus the base's latency (2.5 µs where it had queued). So a longer kernel pushes what follows,
//     or fills an idle gap.
//   - An API call starts as long after the call that ended last before it as in the base. A blocking call ends
//     when the work it waited for has ended; so does a copy of pageable memory, and a long launch into a queue that
//     is nearly as full as it ever was. So the host falls behind where it waits, and nowhere else.
//   - NVTX ranges and other rows of a thread move with the API calls around them.
//   - Work that an edit removes takes its gap with it, and, of the time on the host before a launch that is removed
//     with it ([Remove]), what usually lies between two launches. Work that an edit adds starts when the one before it has
//     ended.
//
// Without an edit the replay is the identity. Where the host runs ahead of the GPU, its slowness is absorbed until
// it no longer does: [Capture.Sized] looks for the strength that has the wanted effect.
//
// # Limits
//
// Processes do not wait for each other, so a collective that lasts longer on one rank does not slow the others, but for
// [Coupled]. Kernels that overlap keep their start, not their overlap.
// Caches and memory traffic are not modelled: work costs what it cost. CPU samples, scheduling and
// operating-system calls are left out of the capture when it is read: what they say is no part of a unit.
//
// # The truth
//
// The truth is computed from the edited rows, between the starts of units that the mutator marked itself
// ([Capture.Mark], [Capture.Cut], [Capture.FindUnits]): never by the product's unit finder. The units at the start
// that take more than 1.5 times their kind's median are warm-up and do not count.
package mutant
