// Package gate brings a verdict to GitHub. It takes a verdict and rendered markdown, and sends requests. Of this module
// it knows diff only: reports, text and flags belong to its caller.
//
// A step of a workflow holds one [Session]:
//
//	s, err := gate.Open(options)            // run, event, subject: what GITHUB_* and the payload say
//	err = s.Of.Run.CheckTrusted()           // trusted: no token beside a stranger's code
//	err = s.Connect(ctx)                    // client, transport: the API, with the token on its host only
//	file, err := (&Pins{Session: s}).Read(…) // pinned: what decides, as it is at the base of the change
//	base, err := s.Baseline(ctx, …)         // baseline, artifact, zip: what to compare with
//	err = s.Accept(ctx, …)                  // accept, label, record: a person accepts a failure
//	s.Tell(ctx, result)                     // log: outputs, summary, annotation; upsert, marker: the one comment
//
// (The words before the colons are the files.) On workflow_run, where a pull request of a fork is commented on by a job
// that may write, [Session.Finished] finds the pull request and [Session.Measured] fetches what the first job measured.
// threats.md lists what others could try, and the test of each.
//
// Three rules hold everywhere. Trouble while telling a verdict does not change it, and is a value that says which
// permission or setting is missing; trouble while reading what decides leaves no verdict. What comes from GitHub is
// untrusted: the author of a fork may have written a payload, a comment, an artifact or a branch name. The token never
// goes to another host, nor into an error.
package gate
