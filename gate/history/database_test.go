package history_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nsys-llm/explain/gate/history"
)

func TestMain(m *testing.M) {
	if place := os.Getenv("HISTORY_TEST_KILL"); place != "" {
		writeUntilKilled(place)
	}
	if told := os.Getenv("HISTORY_TEST_ADD"); told != "" {
		addOne(told)
	}
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// server is PostgreSQL, which the first test that asks for it starts.
var server struct {
	once      sync.Once
	url       string // of a database, but for its name
	skip      string // why there is none
	stop      func()
	databases atomic.Int64
}

// onEach runs a test on both databases, each time with a place for a store that is not there yet.
func onEach(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "history.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, newPostgres(t)) })
}

// newPostgres is the URL of an empty database.
func newPostgres(t *testing.T) string {
	t.Helper()
	server.once.Do(startPostgres)
	if server.skip != "" {
		t.Skip(server.skip)
	}
	db, err := sql.Open("postgres", fmt.Sprintf(server.url, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := "t" + strconv.FormatInt(server.databases.Add(1), 10)
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(server.url, name)
}

// startPostgres starts a server in a temporary folder, as another user where this one is root, which PostgreSQL refuses.
func startPostgres() {
	initdb, err := find("initdb")
	program, err2 := find("postgres")
	if err != nil || err2 != nil {
		server.skip = "PostgreSQL is not installed here: apt-get install postgresql"
		return
	}
	dir, err := os.MkdirTemp("", "pg") // the path of a socket has room for some 100 bytes
	if err != nil {
		server.skip = err.Error()
		return
	}
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		other, err := user.Lookup("postgres")
		if err != nil {
			server.skip = "PostgreSQL does not run as root, and there is no user postgres"
			return
		}
		uid, _ := strconv.Atoi(other.Uid)
		gid, _ := strconv.Atoi(other.Gid)
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := errors.Join(os.Chown(dir, uid, gid), os.Chmod(dir, 0o755)); err != nil {
			server.skip = err.Error()
			return
		}
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr = dir, as
		return c
	}
	if out, err := run(initdb, "-D", data, "-A", "trust", "-U", "test", "--no-sync", "-E", "UTF8").CombinedOutput(); err != nil {
		server.skip = fmt.Sprintf("initdb: %v\n%s", err, out)
		return
	}
	c := run(program, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=40")
	if err := c.Start(); err != nil {
		server.skip = err.Error()
		return
	}
	server.stop = func() {
		_ = c.Process.Signal(syscall.SIGINT)
		_ = c.Wait()
		_ = os.RemoveAll(dir)
	}
	server.url = "postgres://test@/%s?sslmode=disable&host=" + dir
	db, err := sql.Open("postgres", fmt.Sprintf(server.url, "postgres"))
	if err == nil {
		defer db.Close()
		for range 1000 {
			if err = db.Ping(); err == nil {
				return
			}
			_ = exec.Command("sleep", "0.02").Run()
		}
	}
	server.skip = fmt.Sprintf("PostgreSQL did not start: %v", err)
}

// find is a program of PostgreSQL, which Debian puts into no folder of PATH.
func find(name string) (string, error) {
	if list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(list) > 0 {
		return list[len(list)-1], nil
	}
	return exec.LookPath(name)
}

func open(t testing.TB, place string) *history.Store {
	t.Helper()
	s, err := history.Open(context.Background(), place, history.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
