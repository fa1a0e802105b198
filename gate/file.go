package gate

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-github/v62/github"
)

// file reads a file of the repository at a ref, of at most limit bytes. The error is ErrNotFound if there is none.
func (c *client) file(ctx context.Context, name, ref string, limit int) ([]byte, error) {
	name = path.Clean(filepath.ToSlash(name))
	shown := oneLine(name, 120) + " at " + oneLine(ShortRef(ref), 40)
	if !filepath.IsLocal(name) || name == "." || strings.Contains(name, "..") {
		return nil, fmt.Errorf("%q is not a path inside the repository", oneLine(name, 120))
	}
	file, folder, _, err := c.api.Repositories.GetContents(ctx, c.owner, c.repo, name,
		&github.RepositoryContentGetOptions{Ref: ref})
	switch {
	case refused(err).status == http.StatusNotFound:
		// A 404 can also mean that the commit does not exist, or that the token may not read it.
		if _, _, err := c.api.Repositories.GetCommit(ctx, c.owner, c.repo, ref,
			&github.ListOptions{PerPage: 1}); err != nil {
			return nil, c.trouble("read "+shown, "contents: read", err)
		}
		return nil, fmt.Errorf("%w: %s", ErrNotFound, shown)
	case err != nil:
		return nil, c.trouble("read "+shown, "contents: read", err)
	case folder != nil || file.GetType() != "file":
		return nil, fmt.Errorf("%s is not a file", shown)
	}
	size, text := file.GetSize(), []byte(nil)
	switch {
	case size > limit:
	case file.GetEncoding() == "none": // over 1 MB GitHub leaves the text out
		if text, _, err = c.api.Git.GetBlobRaw(ctx, c.owner, c.repo, file.GetSHA()); err != nil {
			return nil, c.trouble("read "+shown, "contents: read", err)
		}
	default:
		content, err := file.GetContent()
		if err != nil {
			return nil, fmt.Errorf("%s: GitHub's answer cannot be read: %w", shown, err)
		}
		text = []byte(content)
	}
	if size = max(size, len(text)); size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", shown, size, limit)
	}
	return text, nil
}
