package history

import "context"

// Tags returns the tags of a repository, by commit.
func (s *Store) Tags(ctx context.Context, repository string) (map[string][]string, error) {
	list, err := all(ctx, s, func(t *[2]string) []any { return []any{&t[0], &t[1]} },
		"SELECT commit_id, tag FROM tags WHERE repository = ? ORDER BY tag", repository)
	tags := map[string][]string{}
	for _, t := range list {
		tags[t[0]] = append(tags[t[0]], t[1])
	}
	return tags, err
}
