package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks the file as a store of samples ("CTNT"); SQLite keeps
// it in the file's header.
const applicationID = 0x43544e54

// steps[i] takes the schema from version i to i+1. Steps are never edited
// once released: files out there stand at every version.
var steps = []string{
	`CREATE TABLE samples (
		id         INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of appending
		source     TEXT    NOT NULL,
		started    TEXT    NOT NULL, -- RFC 3339, UTC; '' where unknown
		ended      TEXT    NOT NULL,
		class      TEXT    NOT NULL,
		scope      TEXT    NOT NULL,
		colocation TEXT    NOT NULL, -- JSON object: tasks by workload, names sorted
		workload   TEXT    NOT NULL,
		role       TEXT    NOT NULL,
		job        TEXT    NOT NULL,
		span       TEXT    NOT NULL,
		batch_size INTEGER NOT NULL,
		metric     TEXT    NOT NULL,
		value      REAL    NOT NULL,
		alone      REAL    NOT NULL, -- 0 where unknown
		repeats    INTEGER NOT NULL, -- 0 means 1
		spread     REAL    NOT NULL
	) STRICT`,
	// Workers of the task's job; 0 means 1. SQLite takes no comment here.
	`ALTER TABLE samples ADD COLUMN workers INTEGER NOT NULL DEFAULT 0`,
}

// prepare checks whose file it is, turns write-ahead logging on (readers and
// one writer don't block each other) and brings the schema up to date.
func prepare(db *sql.DB) error {
	// Two processes that create a file at once can get "busy" from the switch
	// to the write-ahead log without the busy timeout being waited out.
	deadline := time.Now().Add(patience)
	for {
		err := migrate(db)
		var lite *sqlite.Error
		if err == nil || !errors.As(err, &lite) || lite.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func migrate(db *sql.DB) error {
	version, err := check(db)
	if err != nil {
		return err
	}
	var mode string
	if err := db.QueryRow(`PRAGMA journal_mode = wal`).Scan(&mode); err != nil {
		return err
	}
	if version == len(steps) {
		return nil
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	// Another process may have been faster: look again, under the lock.
	if version, err = check(tx); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		if _, err := tx.Exec(steps[version]); err != nil {
			return fmt.Errorf("schema version %d: %w", version+1, err)
		}
	}
	if _, err := tx.Exec(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}

// check returns the schema version of our file, 0 for an empty one, and an
// error for anybody else's.
func check(db interface {
	QueryRow(query string, args ...any) *sql.Row
},
) (version int, err error) {
	var app, tables int
	if err := db.QueryRow(`SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&app, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("an SQLite file of another program (application id %#x); name another file", app)
	case version > len(steps):
		return 0, fmt.Errorf("schema version %d was written by a newer cotenant; this one reads up to %d: upgrade it", version, len(steps))
	}
	return version, nil
}
