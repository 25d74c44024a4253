{{/* A pod's name is this and a number, and a label holds this and a hash: at most 52 characters. */}}
{{- define "deskhand.name" -}}
{{ ternary .Release.Name (printf "%s-deskhand" .Release.Name) (contains "deskhand" .Release.Name) | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "deskhand.selector" -}}
app.kubernetes.io/name: deskhand
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: desktop
{{- end }}

{{- define "deskhand.labels" -}}
{{ include "deskhand.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "deskhand.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "deskhand.secret" -}}
{{ .Values.token.existingSecret | default (include "deskhand.name" .) }}
{{- end }}

{{- define "deskhand.secretKey" -}}
{{ if .Values.token.existingSecret }}{{ .Values.token.key }}{{ else }}token{{ end }}
{{- end }}
