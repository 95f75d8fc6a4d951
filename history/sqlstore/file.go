package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/whole"
)

// AppendFile adds the samples to the store at path in one transaction. Where
// there is none it makes one, in one step: until all samples are on the disk
// nothing is there, not even what SQLite keeps beside a file at work.
func AppendFile(path string, samples ...history.Sample) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Somebody else may make it meanwhile: then ours are added to theirs.
		if err := create(path, samples); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return appendTo(path, path, samples)
}

func appendTo(at, path string, samples []history.Sample) error {
	s, err := openAs(at, path)
	if err != nil {
		return err
	}
	if err := s.Append(samples...); err != nil {
		return errors.Join(err, s.Close())
	}
	// Closing moves the samples from the log into the file, and SQLite keeps
	// silent where it cannot. They are safe in the log, but only there.
	if _, err := s.db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
		return errors.Join(
			fmt.Errorf("sample store %s: the %d samples are stored, but so far only in %s-wal beside it, which must stay with it: %w",
				path, len(samples), filepath.Base(path), explain(err)), s.Close())
	}
	return s.Close()
}

// create makes a store that nobody sees before it is whole. It fails with
// fs.ErrExist where something is at path by then.
func create(path string, samples []history.Sample) error {
	dir, remove, err := whole.Folder(path)
	if err != nil {
		return fmt.Errorf("sample store %s: %w", path, err)
	}
	defer remove()
	temp := filepath.Join(dir, "store.db")
	if err := appendTo(temp, path, samples); err != nil {
		return err
	}
	// A link, unlike a rename, does not replace what is there.
	err = os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without links.
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return whole.Explain(path, os.Rename(temp, path))
}
