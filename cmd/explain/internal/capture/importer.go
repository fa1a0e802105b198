package capture

import (
	"os"
	"os/exec"
	"path/filepath"
)

// importerName is the program that turns a raw stream (.qdstrm) into a report. nsys runs it if it finds it; Debian's
// packages separate the two, and nsys leaves the raw stream.
const importerName = "QdstrmImporter"

// findImporter looks for the importer: $QDSTRM_IMPORTER, PATH, then the host folders beside nsys at each step of its
// symbolic links, and the usual places of an installation. It returns "" if there is none.
func findImporter(nsys string, getenv func(string) string) string {
	if p := getenv("QDSTRM_IMPORTER"); p != "" {
		return p
	}
	if p, err := exec.LookPath(importerName); err == nil {
		return p
	}
	var places []string
	for hop, n := nsys, 0; hop != "" && n < 16; n++ {
		dir := filepath.Dir(hop)
		for range 4 {
			places = append(places, filepath.Join(dir, "host-linux-*"),
				filepath.Join(dir, "nsight-systems", "host-linux-*"),
				filepath.Join(dir, "lib", "nsight-systems", "host-linux-*"))
			dir = filepath.Dir(dir)
		}
		next, err := os.Readlink(hop)
		switch {
		case err != nil:
			next = ""
		case !filepath.IsAbs(next):
			next = filepath.Join(filepath.Dir(hop), next)
		}
		hop = next
	}
	places = append(places, "/usr/lib/nsight-systems/host-linux-*", "/opt/nvidia/nsight-systems/*/host-linux-*",
		"/opt/nvidia/nsight-systems-cli/*/host-linux-*")
	for _, p := range places {
		found, err := filepath.Glob(filepath.Join(p, importerName))
		if err != nil {
			continue
		}
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && !info.IsDir() {
				return f
			}
		}
	}
	return ""
}

// captured returns what nsys left: the report, or a raw stream; both are empty if it left nothing.
func captured(dir string) (report, stream string) {
	for _, ext := range []string{".nsys-rep", ".qdrep"} {
		if info, err := os.Stat(base(dir) + ext); err == nil && info.Size() > 0 {
			return base(dir) + ext, ""
		}
	}
	if info, err := os.Stat(base(dir) + ".qdstrm"); err == nil && info.Size() > 0 {
		return "", base(dir) + ".qdstrm"
	}
	// With several ranges or processes, nsys numbers the reports: trace.1.nsys-rep.
	if found, err := filepath.Glob(base(dir) + ".*.nsys-rep"); err == nil && len(found) > 0 {
		return found[0], ""
	}
	return "", ""
}

// recorded reports whether nsys left anything in a folder.
func recorded(dir string) bool {
	report, stream := captured(dir)
	return report+stream != ""
}
