package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// resetPeak returns what memory it can to the system and, on Linux, lets the
// kernel count the process's peak anew (proc(5), clear_refs). Elsewhere the
// peak stays unknown.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMiB is the most memory that the process held since resetPeak; 0 where
// the system does not say.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
