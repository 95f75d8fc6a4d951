{{/* What the objects are known by. */}}
{{- define "cotenant.labels" -}}
{{ include "cotenant.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: cotenant
{{- end }}

{{/* What finds the pods; it can't change. */}}
{{- define "cotenant.selector" -}}
app.kubernetes.io/name: cotenant-scheduler
app.kubernetes.io/instance: {{ .Values.scheduler.name }}
{{- end }}

{{- define "cotenant.lease.name" -}}
{{ .Values.scheduler.lease.name | default .Values.scheduler.name }}
{{- end }}

{{- define "cotenant.lease.namespace" -}}
{{ .Values.scheduler.lease.namespace | default .Release.Namespace }}
{{- end }}

{{/* The KubeSchedulerConfiguration. */}}
{{- define "cotenant.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: {{ .Values.scheduler.leaderElect }}
  resourceName: {{ include "cotenant.lease.name" . }}
  resourceNamespace: {{ include "cotenant.lease.namespace" . }}
clientConnection:
  qps: {{ .Values.scheduler.clientConnection.qps }}
  burst: {{ .Values.scheduler.clientConnection.burst }}
profiles:
- schedulerName: {{ .Values.scheduler.name }}
  plugins:
    multiPoint:
      enabled:
      - name: Cotenant
  pluginConfig:
  - name: Cotenant
    args:
      {{- toYaml .Values.cotenant | nindent 6 }}
  {{- with .Values.pluginConfig }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
