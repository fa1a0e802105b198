// Package gate brings a verdict to GitHub: it reads the workflow run it is in, fetches baselines, labels and policies
// through the API, and keeps one comment on a pull request up to date. A verdict and rendered markdown go in; requests
// come out. It knows diff and nothing else of this module.
//
// Three rules hold everywhere. Nothing that goes wrong at GitHub changes a verdict: what could not be done is a value
// that says which permission or setting is missing. What comes from GitHub is untrusted: a payload, a comment, an
// artifact or a branch name may have been written by the author of a fork. And the token never leaves for another host,
// nor appears in an error.
package gate
