package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/apis/audit/v1"
)

// Who asked for what, once it was answered; not what was in it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules: [{level: Metadata}]
`

func (p *Plane) auditFile() string { return filepath.Join(p.dir, "audit.jsonl") }

func (p *Plane) auditPolicy() (string, error) {
	file := filepath.Join(p.dir, "audit.yaml")
	return file, os.WriteFile(file, []byte(auditPolicy), 0o600)
}

// AuditLog is what was asked of the API server since the start, where
// Config.Audit was set; a watch is there once it has ended.
func (p *Plane) AuditLog() ([]v1.Event, error) {
	text, err := os.ReadFile(p.auditFile())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	// The last line may be being written.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	var all []v1.Event
	for line := range bytes.Lines(text) {
		var e v1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w in %.200s", err, line)
		}
		all = append(all, e)
	}
	return all, nil
}
