package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/sqlstore"
	"github.com/cotenant/cotenant/internal/whole"
	"github.com/cotenant/cotenant/serve"
)

// serveBalanceFlags are the flags of `cotenant serve balance`.
type serveBalanceFlags struct {
	address, tokenFile, cert, key string
	insecure                      bool
	state, history, sharesLog     string
	historyEvery, forgetAfter     time.Duration
	maxJobs, maxWorkers           int
	readyFile                     string
	parent                        int
}

func serveBalanceCommand() *cobra.Command {
	f := &serveBalanceFlags{}
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Hand out the batch sizes of training jobs: gRPC, gRPC-web and JSON on one port",
		Long: `Runs the balance coordinator: workers of training jobs report how long they
computed, and it answers how many samples each takes so that none waits for
another. gRPC, gRPC-web and JSON by POST share one port; /metrics, /healthz and
/readyz are there too. It ends cleanly on SIGTERM.

docs/serve.md explains the protocol and what survives what.`,
		Example: `  cotenant serve balance
  cotenant serve balance --address :8275 --token-file token --tls-cert cert.pem --tls-key key.pem --state /var/lib/cotenant`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.address, "address", "127.0.0.1:8275", "host:port to answer at; port 0 is any that is free")
	fl.StringVar(&f.tokenFile, "token-file", "", "file with the token that clients must show")
	fl.BoolVar(&f.insecure, "insecure", false, "allow an address that other machines reach without a token")
	fl.StringVar(&f.cert, "tls-cert", "", "certificate in PEM, the chain after it; with --tls-key")
	fl.StringVar(&f.key, "tls-key", "", "its private key in PEM")
	fl.StringVar(&f.state, "state", "", "folder for each job's shares and what was learned, to go on with after a restart")
	fl.StringVar(&f.history, "history", "", "append workers' speeds as samples to this .jsonl file or SQLite database (.db, .sqlite)")
	fl.DurationVar(&f.historyEvery, "history-every", serve.DefaultHistoryEvery, "length of the window that a sample sums up")
	fl.StringVar(&f.sharesLog, "log-shares", "", "append every vector that is handed out to this CSV file, a line a worker")
	fl.DurationVar(&f.forgetAfter, "forget-after", serve.DefaultForgetAfter, "forget jobs that were silent for that long")
	fl.IntVar(&f.maxJobs, "max-jobs", serve.DefaultMaxJobs, "most jobs open at once")
	fl.IntVar(&f.maxWorkers, "max-workers", serve.DefaultMaxWorkers, "most workers of one job")
	fl.StringVar(&f.readyFile, "ready-file", "", `once it answers, write {"address","pid"} to this file`)
	fl.IntVar(&f.parent, "parent", 0, "end when the process of this id does")
	cmd.Annotations = map[string]string{endsItself: "yes"}
	return cmd
}

func (f *serveBalanceFlags) run(cmd *cobra.Command) (err error) {
	switch {
	case f.maxJobs < 1:
		return wrongUse("--max-jobs %d: at least 1", f.maxJobs)
	case f.maxWorkers < 1:
		return wrongUse("--max-workers %d: at least 1", f.maxWorkers)
	case f.forgetAfter <= 0:
		return wrongUse("--forget-after %s: must be positive", f.forgetAfter)
	case f.historyEvery <= 0:
		return wrongUse("--history-every %s: must be positive", f.historyEvery)
	case f.parent < 0:
		return wrongUse("--parent %d: not the id of a process", f.parent)
	case (f.cert == "") != (f.key == ""):
		return wrongUse("--tls-cert and --tls-key go together")
	}
	ctx, errs := cmd.Context(), cmd.ErrOrStderr()
	if f.parent > 0 {
		alive, cancel, err := serve.WhileAlive(ctx, f.parent)
		if err != nil {
			return fmt.Errorf("--parent: %w", err)
		}
		defer cancel()
		ctx = alive
	}
	l := serve.Listener{Address: f.address, Cert: f.cert, Key: f.key, Insecure: f.insecure}
	if l.Token, err = readToken(f.tokenFile); err != nil {
		return err
	}
	o := serve.Options{
		MaxJobs: f.maxJobs, MaxWorkers: f.maxWorkers, ForgetAfter: f.forgetAfter, State: f.state, HistoryEvery: f.historyEvery,
		Warn: func(text string) { fmt.Fprintln(errs, "warning:", text) },
	}
	closers, err := f.outputs(&o)
	defer func() { err = errors.Join(err, closeAll(closers)) }()
	if err != nil {
		return err
	}
	return f.serve(ctx, errs, l, o)
}

// serve answers until the context ends.
func (f *serveBalanceFlags) serve(ctx context.Context, errs io.Writer, l serve.Listener, o serve.Options) error {
	at, err := l.Listen()
	if err != nil {
		return err
	}
	c, err := serve.NewCoordinator(o)
	if err != nil {
		return errors.Join(err, at.Close())
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		c.Run(background)
	}()
	// What the last requests changed is saved after them.
	defer func() {
		stop()
		<-saved
	}()
	address := at.Addr().String()
	if f.readyFile != "" {
		if err := writeReady(f.readyFile, address); err != nil {
			return errors.Join(err, at.Close())
		}
		defer os.Remove(f.readyFile)
	}
	scheme := "http"
	if l.Cert != "" {
		scheme = "https"
	}
	fmt.Fprintf(errs, "balance coordinator at %s://%s\n", scheme, address)
	return l.Serve(ctx, at, serve.Handler(c, l.Token))
}

func writeReady(path, address string) error {
	text, err := json.Marshal(struct {
		Address string `json:"address"`
		PID     int    `json:"pid"`
	}{address, os.Getpid()})
	if err != nil {
		return err
	}
	if err := writeFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}

// readToken reads a token that stands alone in its file.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := string(bytes.TrimSpace(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("--token-file %s: must hold one word, the token", path)
	}
	return token, nil
}

// outputs opens the files that the coordinator appends to.
func (f *serveBalanceFlags) outputs(o *serve.Options) (closers []io.Closer, err error) {
	if f.sharesLog != "" {
		file, err := appendTo(f.sharesLog, serve.SharesHeader)
		if err != nil {
			return closers, fmt.Errorf("--log-shares: %w", err)
		}
		closers = append(closers, file)
		o.SharesLog = file
	}
	if f.history == "" {
		return closers, nil
	}
	switch strings.ToLower(filepath.Ext(f.history)) {
	case ".jsonl":
		file, err := appendTo(f.history, "")
		if err != nil {
			return closers, fmt.Errorf("--history: %w", err)
		}
		o.History = samplesFile{file}
		return append(closers, file), nil
	case ".db", ".sqlite", ".sqlite3":
		store, err := sqlstore.Open(f.history)
		if err != nil {
			return closers, fmt.Errorf("--history: %w", err)
		}
		o.History = store
		return append(closers, store), nil
	}
	return closers, wrongUse("--history %s: name a .jsonl file or a SQLite database (.db, .sqlite)", f.history)
}

// appendTo opens a file at its end and gives an empty one its first line.
func appendTo(path, header string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, whole.Explain(path, err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_, err = file.WriteString(header)
	}
	if err != nil {
		return nil, errors.Join(whole.Explain(path, err), file.Close())
	}
	return file, nil
}

// samplesFile appends samples to a file of JSON Lines, each batch in one write,
// so that a process that is killed leaves whole lines.
type samplesFile struct{ file *os.File }

// Append is part of serve.Sink.
func (s samplesFile) Append(samples ...history.Sample) error {
	var b bytes.Buffer
	if err := formats.WriteJSONL(&b, samples); err != nil {
		return err
	}
	if _, err := s.file.Write(b.Bytes()); err != nil {
		return whole.Explain(s.file.Name(), err)
	}
	return nil
}

func closeAll(closers []io.Closer) error {
	var failed []error
	for _, c := range closers {
		failed = append(failed, c.Close())
	}
	return errors.Join(failed...)
}
