package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Store is a history.Store in an SQLite file. It is safe for concurrent use,
// by goroutines and by processes.
type Store struct {
	db   *sql.DB
	path string
}

var _ history.Store = (*Store)(nil)

// patience is how long a writer waits for another process's transaction.
const patience = 15 * time.Second

// Open opens the store at path and creates it where there is none. It fails
// on a file that is not a store of samples and on one that a newer version
// wrote; neither is changed.
func Open(path string) (*Store, error) {
	if path == "" {
		return nil, errors.New("sample store: path is empty; name a file")
	}
	return openAs(path, path)
}

// openAs opens the file at a place under the name that errors give it.
func openAs(at, path string) (*Store, error) {
	abs, err := filepath.Abs(at)
	if err != nil {
		return nil, fmt.Errorf("sample store %s: %w", path, err)
	}
	// Immediate transactions take the write lock at their start, so that they
	// wait for it instead of failing half-way. Synchronous "full" makes a commit
	// survive a loss of power.
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds()),
			"synchronous(full)",
			"foreign_keys(on)",
		},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("sample store %s: %w", path, err)
	}
	// One connection: SQLite has one writer anyway, and readers of this process
	// see what it appended.
	db.SetMaxOpenConns(1)
	if err := prepare(db); err != nil {
		_ = db.Close() // the first error says more
		return nil, fmt.Errorf("sample store %s: %w", path, explain(err))
	}
	return &Store{db: db, path: path}, nil
}

// Close closes the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("sample store %s: close: %w", s.path, err)
	}
	return nil
}

// Append validates the samples and adds them in one transaction: when it
// returns nil all of them are on the disk, otherwise none is.
func (s *Store) Append(samples ...history.Sample) error {
	for i := range samples {
		if err := samples[i].Validate(); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
	}
	if len(samples) == 0 {
		return nil
	}
	if err := s.append(samples); err != nil {
		return fmt.Errorf("sample store %s: append %d samples: %w", s.path, len(samples), explain(err))
	}
	return nil
}

func (s *Store) append(samples []history.Sample) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	insert, err := tx.Prepare(`INSERT INTO samples (source, started, ended, class, scope, colocation, workload, role,
		job, span, workers, batch_size, metric, value, alone, repeats, spread) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, m := range samples {
		colocation, err := json.Marshal(m.Colocation)
		if err != nil {
			return err
		}
		_, err = insert.Exec(m.Source, stamp(m.Start), stamp(m.End), m.Class, string(m.Scope), string(colocation), m.Workload,
			string(m.Role), m.Job, string(m.Span), m.Workers, m.BatchSize, string(m.Metric), m.Value, m.Alone, m.Repeats, m.Spread)
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// All returns every sample in the order of appending. Samples of equal
// co-locations share one map: callers must not change it.
func (s *Store) All() ([]history.Sample, error) {
	samples, err := s.all()
	if err != nil {
		return nil, fmt.Errorf("sample store %s: read: %w", s.path, explain(err))
	}
	return samples, nil
}

func (s *Store) all() (samples []history.Sample, err error) {
	rows, err := s.db.Query(`SELECT id, source, started, ended, class, scope, colocation, workload, role,
		job, span, workers, batch_size, metric, value, alone, repeats, spread FROM samples ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	seen := map[string]cluster.Colocation{}
	for rows.Next() {
		var m history.Sample
		var id int64
		var started, ended, colocation string
		err := rows.Scan(&id, &m.Source, &started, &ended, &m.Class, &m.Scope, &colocation, &m.Workload, &m.Role,
			&m.Job, &m.Span, &m.Workers, &m.BatchSize, &m.Metric, &m.Value, &m.Alone, &m.Repeats, &m.Spread)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", id, err)
		}
		if m.Start, err = parseStamp(started); err != nil {
			return nil, fmt.Errorf("row %d: started: %w", id, err)
		}
		if m.End, err = parseStamp(ended); err != nil {
			return nil, fmt.Errorf("row %d: ended: %w", id, err)
		}
		m.Colocation = seen[colocation]
		if m.Colocation == nil {
			if err := json.Unmarshal([]byte(colocation), &m.Colocation); err != nil {
				return nil, fmt.Errorf("row %d: colocation %q: %w", id, colocation, err)
			}
			seen[colocation] = m.Colocation
		}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("row %d: %w", id, err)
		}
		samples = append(samples, m)
	}
	return samples, rows.Err()
}

// stamp writes a time as text; "" is the unknown time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func parseStamp(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

// explain adds to SQLite's errors what to do about them.
func explain(err error) error {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return err
	}
	switch lite.Code() & 0xff { // the primary code, without its extension
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("not an SQLite file; name another one, or import it: %w", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another process has kept it locked for %s; try again: %w", patience, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("the file is damaged; restore a copy: %w", err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("cannot be opened; check that its directory exists and may be written: %w", err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("may not be written; check its permissions: %w", err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk is full; free some room, or name a file on another disk: %w", err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("the disk failed, is full, or a file may not grow so large (ulimit -f); free some room, or name a file on another disk: %w", err)
	}
	return err
}
