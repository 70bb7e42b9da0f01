{{/* leasehold.toml. Values are written as JSON, which is valid TOML for these types. */}}
{{- define "leasehold.toml" -}}
{{- include "leasehold.refuse" . -}}
{{- range $section, $settings := .Values.settings }}
[{{ $section }}]
{{- range $name, $value := $settings }}
{{ $name }} = {{ toRawJson $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Rejects settings that have their own chart value. */}}
{{- define "leasehold.refuse" -}}
{{- $elsewhere := dict
  "store.url" "store.existingSecret names the Secret that holds it"
  "store.migrate" "use migrate.enabled instead"
  "temporal.api_key" "temporal.apiKeySecret names the Secret that holds it"
  "worker.server" "the chart sets it to the servers' Service"
  "worker.key" "worker.existingSecret names the Secret that holds it"
  "worker.key_file" "worker.existingSecret names the Secret that holds it"
  "worker.tls_ca_file" "use tls.caKey, the key in tls.existingSecret"
  "server.listen" "the chart sets it to the port that the Service expects"
  "server.tls_certificate_file" "tls.existingSecret names the Secret that holds it"
  "server.tls_key_file" "tls.existingSecret names the Secret that holds it"
-}}
{{- range $section, $settings := .Values.settings -}}
{{- range $name, $_ := $settings -}}
{{- $key := printf "%s.%s" $section $name -}}
{{- if hasKey $elsewhere $key -}}
{{- fail (printf "settings.%s: %s" $key (get $elsewhere $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The environment of every container: the path of the settings file, and secrets, which override the file. */}}
{{- define "leasehold.sharedEnv" -}}
- name: LEASEHOLD_CONFIG
  value: /etc/leasehold/leasehold.toml
{{- with .Values.temporal.apiKeySecret }}
- name: LEASEHOLD__TEMPORAL__API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.temporal.apiKeySecretKey }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The store's URL, from the Secret of `(list . "store")` or `(list . "migrate")`. */}}
{{- define "leasehold.storeEnv" -}}
{{- $root := index . 0 -}}
{{- $from := index $root.Values (index . 1) -}}
- name: LEASEHOLD__STORE__URL
  valueFrom:
    secretKeyRef:
      name: {{ $from.existingSecret | default (required "store.existingSecret: name a Secret that holds the URL of your PostgreSQL, such as: kubectl create secret generic leasehold-store --from-literal=url=postgres://user:password@host/database" $root.Values.store.existingSecret) }}
      key: {{ ternary $from.existingSecretKey $root.Values.store.existingSecretKey (ne $from.existingSecret "") }}
{{- end -}}
