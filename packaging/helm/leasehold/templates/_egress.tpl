{{/* An egress rule to the TCP ports of a target: `.Values.networkPolicy.egress.postgres`. */}}
{{- define "leasehold.egressTo" -}}
- ports:
    {{- range .ports }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* An egress rule to the name servers. */}}
{{- define "leasehold.egressDns" -}}
- ports:
    {{- range .ports }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* An egress rule to the targets of `http` nodes. An exception is written below the networks of its own address family. */}}
{{- define "leasehold.egressHttp" -}}
{{- $except := .except -}}
- to:
    {{- range $cidr := .cidrs }}
    - ipBlock:
        cidr: {{ $cidr | quote }}
        {{- $own := list }}
        {{- range $except }}
        {{- if eq (contains ":" .) (contains ":" $cidr) }}
        {{- $own = append $own . }}
        {{- end }}
        {{- end }}
        {{- with $own }}
        except:
          {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
{{- end -}}
