package gatetest

// Pull request 7 of octo/llm, as most tests have it.
const (
	HeadSHA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	BaseSHA = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

	// PullEvent is the payload of its event.
	PullEvent = `{"number": 7, "action": "synchronize", "pull_request": {"number": 7,
		"head": {"sha": "` + HeadSHA + `", "ref": "feature", "repo": {"id": 1, "full_name": "octo/llm"}},
		"base": {"sha": "` + BaseSHA + `", "ref": "main", "repo": {"id": 1, "full_name": "octo/llm"}}},
		"repository": {"id": 1, "full_name": "octo/llm"}}`
)
