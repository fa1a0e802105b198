package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-github/v62/github"
)

// unusable is an artifact that cannot be used; another one may be usable.
type unusable struct {
	id        int64
	why       string
	untrusted bool // intact perhaps, but it proves nothing about the branch
}

func (e *unusable) Error() string { return fmt.Sprintf("artifact %d cannot be used: %s", e.id, e.why) }

// runArtifact fetches the .json files of a named artifact of one run, for the privileged half of the fork pattern. The
// author of the fork wrote its content. If several attempts left one of that name, it takes the newest.
func (c *client) runArtifact(ctx context.Context, runID int64, name string) ([]File, error) {
	var newest *github.Artifact
	page := &github.ListOptions{PerPage: perPage}
	for n := 0; n < maxPages; n++ {
		list, resp, err := c.api.Actions.ListWorkflowRunArtifacts(ctx, c.owner, c.repo, runID, page)
		if err != nil {
			return nil, c.trouble(fmt.Sprintf("list the artifacts of run %d", runID), needArtifacts, err)
		}
		for _, a := range list.Artifacts {
			if a.GetName() == name && !a.GetExpired() && (newest == nil || a.GetID() > newest.GetID()) {
				newest = a
			}
		}
		if page.Page = resp.NextPage; page.Page == 0 {
			break
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("%w: run %d has no artifact %s (or it has expired)", ErrNotFound, runID,
			oneLine(name, 80))
	}
	return c.download(ctx, newest)
}

// headArtifact fetches the newest artifact of a name that a run on a pull request's head left. It also returns the id
// of that run.
func (c *client) headArtifact(ctx context.Context, pull *Pull, name string) (int64, []File, error) {
	if pull == nil {
		return 0, nil, fmt.Errorf("%w: there is no pull request whose head could have been measured", ErrNotFound)
	}
	list, _, err := c.api.Actions.ListRepositoryWorkflowRuns(ctx, c.owner, c.repo, &github.ListWorkflowRunsOptions{
		HeadSHA: pull.Head.SHA, Event: "pull_request", ListOptions: github.ListOptions{PerPage: perPage}})
	if err != nil {
		return 0, nil, c.trouble("list the runs of "+ShortRef(pull.Head.SHA), needArtifacts, err)
	}
	for _, run := range list.WorkflowRuns { // the newest first
		if run.GetHeadSHA() != pull.Head.SHA || run.GetID() == c.run.ID ||
			run.GetHeadRepository().GetID() != pull.Head.Repo.ID {
			continue
		}
		files, err := c.runArtifact(ctx, run.GetID(), name)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return run.GetID(), files, err
		}
	}
	return 0, nil, fmt.Errorf("%w: %s has not been measured yet", ErrNotFound, ShortRef(pull.Head.SHA))
}

// download fetches an artifact. GitHub answers with a signed address of a storage host. That host must not see the
// token, and the address is as good as a token itself: no error shows it.
func (c *client) download(ctx context.Context, a *github.Artifact) ([]File, error) {
	if size := a.GetSizeInBytes(); size > maxZip {
		return nil, &unusable{id: a.GetID(), why: fmt.Sprintf("it has %d bytes, more than %d", size, int64(maxZip))}
	}
	doing := fmt.Sprintf("download artifact %d", a.GetID())
	where, resp, err := c.api.Actions.DownloadArtifact(ctx, c.owner, c.repo, a.GetID(), 3)
	switch code := refused(err).status; {
	case code == http.StatusGone || code == http.StatusNotFound:
		return nil, &unusable{id: a.GetID(), why: "it has expired or was deleted"}
	case err != nil && resp != nil: // a redirect is expected
		return nil, fmt.Errorf("cannot %s: GitHub says %d", doing, resp.StatusCode)
	case err != nil:
		return nil, c.trouble(doing, needArtifacts, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil || storageRedirect(c.api.BaseURL.Scheme)(req, nil) != nil {
		return nil, fmt.Errorf("cannot %s: GitHub names a storage address that is not https", doing)
	}
	b, err := stored(c.bare, req)
	switch code := refused(err).status; {
	case code == http.StatusGone || code == http.StatusNotFound:
		return nil, &unusable{id: a.GetID(), why: "its storage no longer has it"}
	case errors.Is(err, context.Canceled):
		return nil, context.Canceled
	case code != 0 && !refused(err).later:
		return nil, fmt.Errorf("cannot %s: its storage says %d", doing, code)
	case err != nil:
		return nil, fmt.Errorf("cannot %s: its storage: %s", doing, oneLine(errNetwork(err).Error(), 200))
	}
	files, err := readZip(b)
	if err != nil {
		return nil, &unusable{id: a.GetID(), why: err.Error()}
	}
	return files, nil
}

// stored fetches what a storage host holds, up to one byte over the limit of a zip.
func stored(from *http.Client, req *http.Request) ([]byte, error) {
	blob, err := from.Do(req)
	if err != nil {
		return nil, err
	}
	defer blob.Body.Close()
	return io.ReadAll(io.LimitReader(blob.Body, maxZip+1))
}
