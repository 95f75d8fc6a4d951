package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/sqlstore"
)

// importFlags are the flags of `cotenant import FORMAT`.
type importFlags struct {
	out, output, maxSize string
	strict               bool
	// for samples only
	source, class string
	columns       []string
	exclude       []string
	merge         bool
}

// importRow is what an import says of a file. Fields that its format does not
// have are nil.
type importRow struct {
	Format     string   `json:"format"`
	File       string   `json:"file"`
	Read       int      `json:"read"`
	Skipped    int      `json:"skipped"`
	Duplicates int      `json:"duplicates"`
	Samples    *int     `json:"samples,omitempty"`
	Cells      *int     `json:"cells,omitempty"`
	Clashes    *int     `json:"contradictions,omitempty"`
	Nodes      *int     `json:"nodes,omitempty"`
	Devices    *int     `json:"devices,omitempty"`
	Running    *int     `json:"running,omitempty"`
	Pending    *int     `json:"pending,omitempty"`
	Pods       *int     `json:"pods,omitempty"`
	Classes    []string `json:"classes"`
	Workloads  []string `json:"workloads"`
	Out        string   `json:"out,omitempty"`
	Warnings   []string `json:"warnings"`
}

func importCommand() *cobra.Command {
	c := group("import", "Read measurements and clusters from other people's files",
		importSamples("metis FILE", "Metis's measurements, a NumPy .npz; needs --columns", formats.ReadMetisNPZ),
		importSamples("metis-csv FILE", "Metis's measurements as a plain table: columns W, rps_W, rt50_W, rt99_W", formats.ReadMetisCSV),
		importSamples("gavel FILE", "Gavel's throughputs: training jobs alone and in pairs on a device", formats.ReadGavel),
		importSamples("dl2 FILE", "DL2's speeds: training jobs by parameter servers and workers", formats.ReadDL2Samples),
		importSamples("jsonl FILE", "samples in our own JSON Lines", formats.ReadJSONL),
		importSamples("csv FILE", "samples as a table, a line a sample", formats.ReadCSV),
		importPrometheus(), importKubernetes(), importOpenb(),
	)
	c.Long = `Read a file in one of the formats below, say what is in it, and with --out write
it in our own form. FILE can be - for standard input, and gzip.

Bad records are left out, counted and named on stderr; with --strict the first
one ends the import. A damaged file is an error either way. The file of --out is
replaced in one step, or, if it is an SQLite store, appended to in one
transaction: nothing is left half-written. docs/formats.md describes each format.`
	c.Example = `  cotenant import metis table.npz --columns redis,mms,checksum,isr,ycsb_a,ycsb_b,scenedetect --out table.jsonl
  cotenant import gavel throughputs.json --out gavel.jsonl
  cotenant import jsonl monday.jsonl.gz --class c5 --out history.db
  kubectl get nodes,pods -A -o json | cotenant import kubernetes - --out cluster.json`
	return c
}

func (f *importFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", out)
	fl.BoolVar(&f.strict, "strict", false, "fail on the first bad record, and on fields that the format does not have")
	fl.StringVar(&f.maxSize, "max-size", "512Mi", "refuse files that unpack to more than this `quantity` of bytes")
	outputFlag(cmd, &f.output)
}

// options checks the flags and makes the reader's options of them.
func (f *importFlags) options() (formats.Options, error) {
	if err := checkOutput(f.output); err != nil {
		return formats.Options{}, err
	}
	most, err := parseAmount(cluster.Memory, f.maxSize)
	if err != nil || most < 1 {
		return formats.Options{}, wrongUse("--max-size %s: not a size; write for example 512Mi or 4Gi", f.maxSize)
	}
	return formats.Options{
		Strict: f.strict, MaxBytes: most, Source: f.source, Class: f.class, Columns: f.columns, Exclude: f.exclude,
	}, nil
}

func importSamples(use, short string, read func(io.Reader, formats.Options) ([]history.Sample, formats.Report, error)) *cobra.Command {
	f := &importFlags{}
	format, _, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	f.register(cmd, "write the samples to `FILE`: .jsonl or .csv (with .gz packed), .db for an SQLite store, - for JSON Lines on stdout")
	fl := cmd.Flags()
	fl.StringVar(&f.source, "source", "", "who measured, for samples that don't say")
	fl.StringVar(&f.class, "class", "", "class of the machine, for samples that don't say")
	fl.BoolVar(&f.merge, "merge", false, "write one sample a cell: the mean of its repeats, their number and spread")
	if format == "metis" {
		fl.StringSliceVar(&f.columns, "columns", nil, "workloads of the columns, in their order, as the file does not name them")
	}
	if format == "gavel" {
		fl.StringSliceVar(&f.exclude, "exclude", excludedFamilies,
			"families of workloads to leave out: the rates alone of Recommendation disagree by ten times with what its authors measured elsewhere; '' keeps all")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.options()
		if err != nil {
			return err
		}
		if format == "metis" && len(f.columns) == 0 {
			return wrongUse("--columns is missing: the file does not name its workloads, and two orders are in use: " +
				"redis,mms,checksum,isr,ycsb_a,ycsb_b,scenedetect and redis,mms,checksum,ycsb_a,ycsb_b,scenedetect,isr")
		}
		write, err := sampleWriter(cmd, f.out)
		if err != nil {
			return err
		}
		samples, rep, err := importFile(cmd, args[0], o, read)
		if err != nil {
			return err
		}
		// The repeats of a record by `cotenant profile` differ by noise, and are
		// joined; what is left then has one sample a cell, none that contradict.
		sum := history.Summarise(history.Joined(samples))
		if err := f.contradictions(cmd.ErrOrStderr(), args[0], sum, rep); err != nil {
			return err
		}
		row := importRow{
			Format: format, File: args[0], Read: rep.Read, Skipped: rep.Skipped, Duplicates: rep.Duplicates,
			Clashes: ref(len(sum.Contradictions)), Warnings: rep.Warnings,
		}
		return f.finish(cmd, row, samples, sum, write)
	}
	return cmd
}

// finish writes samples, and says what they are.
func (f *importFlags) finish(cmd *cobra.Command, row importRow, samples []history.Sample, sum history.Summary, write func([]history.Sample) error) error {
	row.Samples, row.Cells, row.Out = ref(len(samples)), ref(len(sum.Samples)), f.out
	for _, s := range sum.Samples {
		row.Workloads = append(row.Workloads, s.Workload)
		row.Classes = append(row.Classes, s.Class)
	}
	if f.merge {
		samples = sum.Samples
	}
	if err := write(samples); err != nil {
		return err
	}
	if err := f.show(cmd, row); err != nil {
		return err
	}
	if row.Skipped > row.Read {
		// A success all the same, as --strict is there to fail: but one that must
		// not be taken for a whole file.
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: only %d of %d records were taken in, the other %d are bad (see above): check the columns and the format before you rely on what is left\n",
			row.File, row.Read, row.Read+row.Skipped, row.Skipped)
	}
	return nil
}

// excludedFamilies are left out of Gavel's files where no flag says otherwise.
var excludedFamilies = []string{"recommendation"}

// contradictions names the cells that contradict themselves, by line; strict,
// the first is an error.
func (f *importFlags) contradictions(log io.Writer, file string, sum history.Summary, rep formats.Report) error {
	for i, c := range sum.Contradictions {
		const most = 10
		if i == most && !f.strict {
			fmt.Fprintf(log, "%s: %d more contradictions\n", file, len(sum.Contradictions)-most)
			return nil
		}
		text := fmt.Sprintf("%s: %ss %d and %d contradict each other: %v", file, rep.Unit, rep.Where[c.LowAt], rep.Where[c.HighAt], c)
		if f.strict {
			return errors.New(text)
		}
		fmt.Fprintln(log, text)
	}
	return nil
}

// sampleWriter is how samples get into the file of --out, by its name.
func sampleWriter(cmd *cobra.Command, out string) (func([]history.Sample) error, error) {
	to := func(write func(io.Writer, []history.Sample) error) func([]history.Sample) error {
		return func(samples []history.Sample) error {
			return formats.WriteFile(out, func(w io.Writer) error { return write(w, samples) })
		}
	}
	name := strings.TrimSuffix(out, ".gz")
	switch ext := name[strings.LastIndexByte(name, '.')+1:]; {
	case out == "":
		return func([]history.Sample) error { return nil }, nil
	case out == formats.Stdin:
		return func(samples []history.Sample) error { return formats.WriteJSONL(cmd.OutOrStdout(), samples) }, nil
	case ext == "jsonl":
		return to(formats.WriteJSONL), nil
	case ext == "csv":
		return to(formats.WriteCSV), nil
	case name == out && slices.Contains([]string{"db", "sqlite", "sqlite3"}, ext):
		return func(samples []history.Sample) error {
			return sqlstore.AppendFile(out, samples...)
		}, nil
	}
	return nil, wrongUse("--out %s: the form is not clear from the name; end it in .jsonl, .csv (.gz if packed) or .db", out)
}

func importKubernetes() *cobra.Command {
	f := &importFlags{}
	cmd := &cobra.Command{
		Use: "kubernetes FILE", Short: "what kubectl get nodes,pods -A -o json (or yaml) printed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			c, rep, err := importFile(cmd, args[0], o, formats.ReadKubernetes)
			if err != nil {
				return err
			}
			row := importRow{
				Format: "kubernetes", File: args[0], Read: rep.Read, Skipped: rep.Skipped, Duplicates: rep.Duplicates,
				Nodes: ref(len(c.Nodes)), Devices: ref(0), Running: ref(len(c.Running)), Pending: ref(0),
				Out: f.out, Warnings: rep.Warnings,
			}
			row.addNodes(c.Nodes)
			for _, r := range c.Running {
				row.Workloads = append(row.Workloads, r.Workload)
			}
			for _, g := range c.Pending {
				*row.Pending += len(g.Tasks)
				for _, t := range g.Tasks {
					row.Workloads = append(row.Workloads, t.Workload)
				}
			}
			if err := writeImported(cmd, f.out, func(w io.Writer) error { return formats.WriteCluster(w, c) }); err != nil {
				return err
			}
			return f.show(cmd, row)
		},
	}
	f.register(cmd, "write the cluster to `FILE` in our own JSON, as --cluster takes it (- for stdout)")
	return cmd
}

func importOpenb() *cobra.Command {
	f := &importFlags{}
	cmd := &cobra.Command{
		Use: "openb NODES [PODS]", Short: "nodes and pods of Alibaba's GPU trace of 2023", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			var trace formats.Trace
			var rep formats.Report
			if trace.Nodes, rep, err = importFile(cmd, args[0], o, formats.ReadOpenbNodes); err != nil {
				return err
			}
			row := importRow{
				Format: "openb", File: args[0], Read: rep.Read, Skipped: rep.Skipped, Duplicates: rep.Duplicates,
				Nodes: ref(len(trace.Nodes)), Devices: ref(0), Out: f.out, Warnings: rep.Warnings,
			}
			row.addNodes(trace.Nodes)
			rows := []importRow{row}
			if len(args) == 2 {
				if trace.Pods, rep, err = importFile(cmd, args[1], o, formats.ReadOpenbPods); err != nil {
					return err
				}
				row := importRow{
					Format: "openb", File: args[1], Read: rep.Read, Skipped: rep.Skipped, Duplicates: rep.Duplicates,
					Pods: ref(len(trace.Pods)), Out: f.out, Warnings: rep.Warnings,
				}
				for _, p := range trace.Pods {
					row.Workloads = append(row.Workloads, p.Task.Workload)
					row.Classes = append(row.Classes, p.Classes...)
				}
				rows = append(rows, row)
			}
			if err := writeImported(cmd, f.out, func(w io.Writer) error { return formats.WriteTrace(w, trace) }); err != nil {
				return err
			}
			return f.show(cmd, rows...)
		},
	}
	f.register(cmd, "write nodes and pods to `FILE` in our own JSON (- for stdout); without PODS it is what --cluster takes")
	return cmd
}

// importFile reads one file and prints what its reader warns of.
func importFile[T any](cmd *cobra.Command, path string, o formats.Options, read func(io.Reader, formats.Options) (T, formats.Report, error)) (T, formats.Report, error) {
	var got T
	var rep formats.Report
	var err error
	if path == formats.Stdin {
		o.Name = "standard input"
		got, rep, err = read(cmd.InOrStdin(), o)
	} else {
		got, rep, err = formats.ReadFile(path, o, read)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no file %q; check the path", path)
	}
	if err != nil { // which names the first bad record, where that is all there is
		return got, rep, err
	}
	for _, w := range rep.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	return got, rep, nil
}

func writeImported(cmd *cobra.Command, out string, write func(io.Writer) error) error {
	switch out {
	case "":
		return nil
	case formats.Stdin:
		return write(cmd.OutOrStdout())
	}
	return formats.WriteFile(out, write)
}

func (r *importRow) addNodes(nodes []cluster.Node) {
	for _, n := range nodes {
		*r.Devices += len(n.Devices)
		r.Classes = append(r.Classes, n.Class)
	}
}

// show prints the rows, on stderr where stdout has the data itself.
func (f *importFlags) show(cmd *cobra.Command, rows ...importRow) error {
	w := cmd.OutOrStdout()
	if f.out == formats.Stdin {
		w = cmd.ErrOrStderr()
	}
	for i := range rows {
		slices.Sort(rows[i].Classes)
		slices.Sort(rows[i].Workloads)
		rows[i].Classes = named(slices.Compact(rows[i].Classes))
		rows[i].Workloads = named(slices.Compact(rows[i].Workloads))
		rows[i].Warnings = append([]string{}, rows[i].Warnings...) // [] in JSON, not null
	}
	switch f.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	}
	header, cells := importTable(rows)
	if f.output == "csv" {
		for i := range header {
			header[i] = strings.TrimSpace(header[i])
		}
		return writeCSV(w, header, cells)
	}
	return writeTable(w, header, cells)
}

// named drops the empty name, and is never nil.
func named(names []string) []string {
	return append([]string{}, slices.DeleteFunc(names, func(n string) bool { return n == "" })...)
}

// importTable has the columns that some row has.
func importTable(rows []importRow) (header []string, cells [][]string) {
	cells = make([][]string, len(rows))
	add := func(name string, value func(r *importRow) string) {
		column := make([]string, len(rows))
		has := false
		for i := range rows {
			column[i] = value(&rows[i])
			has = has || column[i] != ""
		}
		if !has {
			return
		}
		header = append(header, name)
		for i := range rows {
			cells[i] = append(cells[i], column[i])
		}
	}
	count := func(name string, value func(r *importRow) *int) {
		add(" "+name, func(r *importRow) string {
			if n := value(r); n != nil {
				return strconv.Itoa(*n)
			}
			return ""
		})
	}
	add("format", func(r *importRow) string { return r.Format })
	add("file", func(r *importRow) string { return r.File })
	count("read", func(r *importRow) *int { return &r.Read })
	count("skipped", func(r *importRow) *int { return &r.Skipped })
	count("duplicates", func(r *importRow) *int { return &r.Duplicates })
	count("samples", func(r *importRow) *int { return r.Samples })
	count("cells", func(r *importRow) *int { return r.Cells })
	count("contradictions", func(r *importRow) *int { return r.Clashes })
	count("nodes", func(r *importRow) *int { return r.Nodes })
	count("devices", func(r *importRow) *int { return r.Devices })
	count("running", func(r *importRow) *int { return r.Running })
	count("pending", func(r *importRow) *int { return r.Pending })
	count("pods", func(r *importRow) *int { return r.Pods })
	count("classes", func(r *importRow) *int { return ref(len(r.Classes)) })
	count("workloads", func(r *importRow) *int { return ref(len(r.Workloads)) })
	add("out", func(r *importRow) string { return r.Out })
	return header, cells
}

func ref(n int) *int { return &n }
