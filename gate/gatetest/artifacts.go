package gatetest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// listArtifacts lists those of the repository, filtered by name, or those of one run; newest first.
func (s *Server) listArtifacts(w http.ResponseWriter, r *http.Request) {
	name, run := r.URL.Query().Get("name"), pathNumber(r, "run")
	var all []object
	for _, a := range slices.Backward(slices.SortedFunc(slices.Values(s.state.Artifacts),
		func(a, b Artifact) int { return int(a.ID - b.ID) })) {
		if name != "" && a.Name != name || run != 0 && a.RunID != run {
			continue
		}
		size := a.Size
		if size == 0 {
			size = int64(len(a.zip()))
		}
		out := object{"id": a.ID, "name": a.Name, "expired": a.Expired, "size_in_bytes": size}
		if of := s.run(a.RunID); of != nil {
			out["workflow_run"] = object{"id": of.ID, "repository_id": s.state.RepositoryID,
				"head_repository_id": of.HeadRepoID, "head_branch": of.HeadBranch, "head_sha": of.HeadSHA}
		}
		all = append(all, out)
	}
	write(w, http.StatusOK, object{"total_count": len(all), "artifacts": page(s, w, r, all)})
}

func (s *Server) run(id int64) *Run {
	return lists.Find(s.state.Runs, func(r *Run) bool { return r.ID == id })
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) {
	if run := named(w, r, "run", s.state.Runs, func(r *Run) int64 { return r.ID }); run != nil {
		write(w, http.StatusOK, s.runObject(*run))
	}
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	jobs := []object{}
	if run := s.run(pathNumber(r, "run")); run != nil && run.FailedJob != "" {
		jobs = append(jobs, object{"name": "lint", "conclusion": "success"},
			object{"name": run.FailedJob, "conclusion": "failure", "html_url": fmt.Sprintf("https://github.example/octo/llm/actions/runs/%d/job/3", run.ID)})
	}
	write(w, http.StatusOK, object{"total_count": len(jobs), "jobs": jobs})
}

func (s *Server) runObject(run Run) object {
	return object{"id": run.ID, "run_attempt": run.Attempt, "event": run.Event, "head_sha": run.HeadSHA,
		"head_branch": run.HeadBranch, "status": "completed", "repository": object{"id": s.state.RepositoryID},
		"head_repository": object{"id": run.HeadRepoID}}
}

// listRuns lists the runs of a workflow, or of all, on a branch and of an event; all of them have ended.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	all := lists.Filter(s.state.Runs, func(run Run) bool {
		is := func(asked, has string) bool { return asked == "" || asked == has }
		return is(r.PathValue("file"), run.Workflow) && is(q.Get("head_sha"), run.HeadSHA) &&
			is(q.Get("branch"), run.HeadBranch) && is(q.Get("event"), run.Event)
	})
	write(w, http.StatusOK, object{"total_count": len(all), "workflow_runs": lists.Map(page(s, w, r, all), s.runObject)})
}

func (s *Server) artifact(r *http.Request) *Artifact {
	return lists.Find(s.state.Artifacts, func(a *Artifact) bool { return a.ID == pathNumber(r, "id") })
}

// downloadArtifact answers with a signed address of a storage, as GitHub does.
func (s *Server) downloadArtifact(w http.ResponseWriter, r *http.Request) {
	a := s.artifact(r)
	switch {
	case a == nil:
		fail(w, http.StatusNotFound, "Not Found")
	case a.Expired:
		fail(w, http.StatusGone, "Artifact has expired")
	default:
		w.Header().Set("Location", fmt.Sprintf("http://%s/_storage/%d?sig=secret-signature", r.Host, a.ID))
		w.WriteHeader(http.StatusFound)
	}
}

// storage refuses a request that carries GitHub's token, as GitHub's does.
func (s *Server) storage(w http.ResponseWriter, r *http.Request) {
	a := s.artifact(r)
	switch {
	case r.Header.Get("Authorization") != "":
		http.Error(w, "InvalidAuthenticationInfo", http.StatusBadRequest)
	case a == nil || r.URL.Query().Get("sig") != "secret-signature":
		http.Error(w, "BlobNotFound", http.StatusNotFound)
	default:
		w.Write(a.zip())
	}
}

// zip is what the storage has of an artifact.
func (a *Artifact) zip() []byte {
	if len(a.Raw) > 0 {
		return a.Raw
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, mode fs.FileMode, content io.Reader) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode)
		f, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.Copy(f, content)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Files)) {
		add(name, 0o644, bytes.NewReader([]byte(a.Files[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Links)) {
		add(name, fs.ModeSymlink|0o777, bytes.NewReader([]byte(a.Links[name])))
	}
	if a.Bomb > 0 {
		add("bomb.json", 0o644, io.LimitReader(zeros{}, a.Bomb))
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
