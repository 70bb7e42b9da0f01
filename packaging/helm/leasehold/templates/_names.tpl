{{/* The release's name, including the chart's name. */}}
{{- define "leasehold.name" -}}
{{- if contains "leasehold" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-leasehold" (.Release.Name | trunc 40 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* The immutable selector labels of a component: `(list . "server")`. */}}
{{- define "leasehold.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: leasehold
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* All labels of a component: `(list . "server")`. */}}
{{- define "leasehold.labels" -}}
{{- $root := index . 0 -}}
{{ include "leasehold.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- define "leasehold.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "leasehold.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* The URL of the servers inside the cluster. */}}
{{- define "leasehold.url" -}}
{{- $scheme := ternary "https" "http" (ne .Values.tls.existingSecret "") -}}
{{- printf "%s://%s.%s.svc:%v" $scheme (include "leasehold.name" .) .Release.Namespace .Values.service.port -}}
{{- end -}}

{{- define "leasehold.onTemporal" -}}
{{- if eq (dig "engine" "kind" "embedded" .Values.settings) "temporal" }}true{{ end -}}
{{- end -}}
