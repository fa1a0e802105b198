package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	_ "github.com/lib/pq"  // the database/sql driver "postgres"
	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// Store holds runs. Several processes can use the same store at a time, each through a Store of its own; a SQLite file
// needs locks that hold between their machines.
type Store struct {
	sql     dialect
	db      *sql.DB
	name    string        // for people, without a password
	old     bool          // read-only
	connect time.Duration // limit for the first answer
}

// Mode of opening a store.
type Mode int

const (
	Read   Mode = iota // it must be there
	Create             // create it if it does not exist
)

// Open opens a store: a SQLite file by its path, PostgreSQL by a URL, postgres://…. It migrates a store of an older
// schema, and refuses one of a newer schema.
func Open(ctx context.Context, place string, mode Mode) (*Store, error) {
	s := &Store{sql: sqlite, name: Name(place), connect: 2 * time.Minute}
	var source string
	var err error
	switch {
	case isURL(place):
		s.sql = postgres
		source, s.connect, err = withLimits(place)
	case IsFile(place):
		source, s.old, err = fileSource(place, mode)
	default:
		err = errAddress
	}
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(s.sql.driver, source)
	if err != nil {
		return nil, s.fail(err)
	}
	db.SetMaxOpenConns(1) // a command sends one query at a time
	s.db = db
	first, cancel := context.WithTimeout(ctx, s.connect+time.Second) // in case a server accepts and never answers
	defer cancel()
	if err := migrate(first, s); err != nil {
		return nil, errors.Join(s.fail(err), db.Close())
	}
	return s, nil
}

// With opens a store, runs do with it and closes it.
func With(ctx context.Context, place string, mode Mode, do func(s *Store) error) error {
	s, err := Open(ctx, place, mode)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Default limits of waiting for PostgreSQL. The URL can set others: connect_timeout in seconds, statement_timeout in
// milliseconds.
const (
	connectLimit   = 10 * time.Second
	statementLimit = 60 * time.Second
)

// errAddress does not repeat the address: what cannot be read may hold a password anywhere.
var errAddress = errors.New("the address of the history cannot be read; write a file, or postgres://USER@HOST/DATABASE")

// withLimits adds these limits to the URL of a PostgreSQL database.
func withLimits(place string) (source string, connect time.Duration, err error) {
	u, err := url.Parse(place)
	if err != nil {
		return "", 0, errAddress
	}
	q := u.Query()
	connect = connectLimit
	if text := q.Get("connect_timeout"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return "", 0, fmt.Errorf("connect_timeout=%s of the history: a number of seconds, such as 10", text)
		}
		connect = time.Duration(n) * time.Second
	}
	q.Set("connect_timeout", strconv.Itoa(int(connect.Seconds())))
	if !q.Has("statement_timeout") {
		q.Set("statement_timeout", strconv.Itoa(int(statementLimit.Milliseconds())))
	}
	u.RawQuery = q.Encode()
	return u.String(), connect, nil
}

// fileSource returns the driver's name of a SQLite file; old says that it cannot be written.
func fileSource(path string, mode Mode) (source string, old bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mode == Read:
		return "", false, fmt.Errorf("there is no history %s: explain history add REPORT --store %s --commit SHA begins one", path, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", false, err
	case err == nil && info.IsDir():
		return "", false, fmt.Errorf("%s is a folder: name a file, such as %s/history.db", path, path)
	case err == nil && !info.Mode().IsRegular(): // a device or a pipe: SQLite would leave a journal beside it
		return "", false, fmt.Errorf("%s is not a regular file: name one, such as history.db", path)
	}
	q := url.Values{"_pragma": {"busy_timeout(60000)", "foreign_keys(1)"}, "_txlock": {"immediate"}}
	if err == nil && !writable(path) {
		q.Del("_txlock")
		q.Set("mode", "ro")
		old = true
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	return file.String(), old, nil
}

func writable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	return err == nil && f.Close() == nil
}

// Name returns the name of the store, see [Name].
func (s *Store) Name() string { return s.name }

// Name returns a place as people may read it and --history takes it: without a password, which PGPASSWORD can hold.
func Name(place string) string {
	u, err := url.Parse(place)
	if err != nil || !isURL(place) {
		return place
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	if q := u.Query(); q.Has("password") {
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// IsFile reports whether a place is a file: neither a URL nor the words of a connection, host=… password=….
func IsFile(place string) bool {
	words := strings.ReplaceAll(strings.ToLower(place), " ", "") // libpq and others allow password = …, and Password=…
	return !strings.Contains(place, "://") && !strings.Contains(words, "password=")
}

// isURL reports whether a place is the URL of a PostgreSQL database, and not a file.
func isURL(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

func (s *Store) Close() error { return s.db.Close() }

// fail adds the store to an error, and what to do about it.
func (s *Store) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	text := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "i/o timeout"):
		return fmt.Errorf("history %s does not answer within %s (%w): is the database up? connect_timeout=SECONDS in its URL waits longer", s.name, s.connect, err)
	case strings.Contains(text, "connection refused"), strings.Contains(text, "no such host"):
		return fmt.Errorf("history %s: %w: start the database, or check host and port of --store", s.name, err)
	case strings.Contains(text, "statement timeout"):
		return fmt.Errorf("history %s: %w: statement_timeout=MILLISECONDS in its URL allows more", s.name, err)
	case strings.Contains(text, "not a database"), strings.Contains(text, "malformed"),
		strings.Contains(text, "SQLITE_CORRUPT"):
		return fmt.Errorf("history %s is broken (%w): take an earlier copy of it, or make it again with explain history add", s.name, err)
	case strings.Contains(text, "readonly"), s.old && strings.Contains(text, "unable to open"):
		return fmt.Errorf("history %s cannot be written (%w): make it and its folder writable, or work on a copy", s.name, err)
	case strings.Contains(text, "locked"), strings.Contains(text, "SQLITE_BUSY"):
		return fmt.Errorf("history %s is written by somebody else for more than a minute (%w): try again", s.name, err)
	}
	return fmt.Errorf("history %s: %w", s.name, err)
}

// change runs fn in one transaction: everything that it writes is stored, or nothing.
func (s *Store) change(ctx context.Context, fn func(c *changes)) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.fail(err)
	}
	c := &changes{s: s, tx: tx, metrics: map[metricKey]int64{}}
	if fn(c); c.err != nil {
		return errors.Join(c.err, tx.Rollback())
	}
	return s.fail(tx.Commit())
}

// changes is a transaction that writes. It keeps the first error, and asks the database nothing after it: callers look
// at err where they would go on for long.
type changes struct {
	s       *Store
	tx      *sql.Tx
	metrics map[metricKey]int64 // ids of the metrics seen so far
	err     error
}

// refuse ends the changes with an error of their own, unless there was one before.
func (c *changes) refuse(format string, args ...any) {
	c.err = cmp.Or(c.err, fmt.Errorf(format, args...))
}

// exec runs a statement and returns how many rows it changed.
func (c *changes) exec(ctx context.Context, query string, args ...any) (n int64) {
	if c.err != nil {
		return 0
	}
	res, err := c.tx.ExecContext(ctx, c.s.sql.query(query), args...)
	if err == nil {
		n, err = res.RowsAffected()
	}
	c.err = c.s.fail(err)
	return n
}

// get reads the only column of the first row of a query, which must be there.
func (c *changes) get(ctx context.Context, to any, query string, args ...any) {
	if c.err == nil {
		c.err = c.s.fail(c.tx.QueryRowContext(ctx, c.s.sql.query(query), args...).Scan(to))
	}
}

// insert adds a row unless one with its key exists, and returns its id. fresh reports whether it was added.
func (c *changes) insert(ctx context.Context, add string, args []any, find string, key ...any) (id int64, fresh bool) {
	fresh = c.exec(ctx, add+" ON CONFLICT DO NOTHING", args...) > 0
	c.get(ctx, &id, find, key...)
	return id, fresh
}

// all returns all rows of a query; fields are where the columns of a row go.
func all[T any](ctx context.Context, s *Store, fields func(v *T) []any, query string, args ...any) ([]T, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.query(query), args...)
	if err != nil {
		return nil, s.fail(err)
	}
	list, err := collect(rows, fields)
	return list, s.fail(err)
}
