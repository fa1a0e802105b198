// Package examples holds the workflows, jobs and configurations of this folder, so that the binary can print them
// whole.
package examples

import "embed"

// Files are the examples that somebody copies, by their paths in this folder.
//
//go:embed agents buildkite github gitlab/.gitlab-ci.yml jenkins kubernetes slurm
var Files embed.FS
