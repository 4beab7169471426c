{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The name that all objects begin with. */}}
{{- define "rollcall.name" -}}
{{- $name := .Values.nameOverride -}}
{{- if not $name -}}
{{- $name = ternary .Release.Name (printf "%s-rollcall" .Release.Name) (contains "rollcall" .Release.Name) | trunc 40 | trimAll "-" -}}
{{- end -}}
{{- /* Of services too: RFC 1035, and at most 63 characters with what follows it. */ -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" $name) -}}
{{- fail (printf "%q cannot begin the names of services: letters a-z, digits and -, a letter first, at most 40 characters. Choose another one:  --set nameOverride=rollcall" $name) -}}
{{- end -}}
{{ $name }}
{{- end -}}

{{- define "rollcall.labels" -}}
app.kubernetes.io/name: rollcall
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Labels that choose the pods of one part. Call it with (list . "daemon"). */}}
{{- define "rollcall.selector" -}}
app.kubernetes.io/name: rollcall
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "rollcall.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is missing: deploy/package.sh image makes the image; push it and say where it is:  --set image.repository=registry.example/rollcall" -}}
{{- end -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest -}}@{{ .Values.image.digest }}
{{- else -}}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "rollcall.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* What every container of the chart has, except the agent's user and capabilities. */}}
{{- define "rollcall.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Not empty: several daemons share a database. */}}
{{- define "rollcall.several" -}}
{{- $daemon := .Values.daemon -}}
{{- if and $daemon.enabled (gt (int $daemon.replicas) 1) -}}
{{- if not $daemon.storeSecret -}}
{{- fail (printf "daemon.replicas is %d, and several daemons need a PostgreSQL database that they share: make a secret whose file \"url\" is postgresql://USER:PASSWORD@HOST/DATABASE (kubectl --namespace %s create secret generic rollcall-store --from-file=url=FILE) and name it:  --set daemon.storeSecret=rollcall-store" (int $daemon.replicas) .Release.Namespace) -}}
{{- end -}}
{{- if and $daemon.persistence.enabled $daemon.persistence.existingClaim -}}
{{- fail "daemon.persistence.existingClaim is one volume, and each of several daemons needs its own: leave it out, and say of which class the volumes are:  --set daemon.persistence.existingClaim= --set daemon.persistence.storageClass=CLASS" -}}
{{- end -}}
yes
{{- end -}}
{{- end -}}

{{- define "rollcall.daemonSecret" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{ required "tls.existing.daemonSecret is missing: the secret with tls.crt, tls.key and ca.crt" .Values.tls.existing.daemonSecret }}
{{- else if include "rollcall.several" . -}}
{{- /* Another one: an upgrade keeps a secret, and that of one daemon lacks the names of several. */ -}}
{{ include "rollcall.name" . }}-daemons-tls
{{- else -}}{{ include "rollcall.name" . }}-daemon-tls{{- end -}}
{{- end -}}

{{- define "rollcall.webhookSecret" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{ required "tls.existing.webhookSecret is missing: the secret with tls.crt and tls.key" .Values.tls.existing.webhookSecret }}
{{- else -}}{{ include "rollcall.name" . }}-webhook-tls{{- end -}}
{{- end -}}

{{/* Names in the daemon's certificate. localhost is for kubectl port-forward. */}}
{{- define "rollcall.daemonNames" -}}
{{- $name := printf "%s-daemon" (include "rollcall.name" .) -}}
{{ printf "%s.%s.svc,%s.%s.svc.cluster.local,%s,localhost" $name .Release.Namespace $name .Release.Namespace $name }}
{{- if include "rollcall.several" . -}}
{{- range list "" "*." -}}
{{ printf ",%s%ss.%s.svc,%s%ss.%s.svc.cluster.local" . $name $.Release.Namespace . $name $.Release.Namespace }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "rollcall.webhookNames" -}}
{{- $name := printf "%s-webhook" (include "rollcall.name" .) -}}
{{ printf "%s.%s.svc,%s.%s.svc.cluster.local" $name .Release.Namespace $name .Release.Namespace }}
{{- end -}}

{{/* "policy", "webhook" or "none". No API server has taken the policy yet, so nobody gets it unasked. */}}
{{- define "rollcall.injection" -}}
{{- if eq .Values.injection.mode "auto" -}}webhook{{- else -}}{{ .Values.injection.mode }}{{- end -}}
{{- end -}}

{{/* The secret with the ca.crt by which the agents know their daemon. */}}
{{- define "rollcall.caSecret" -}}
{{- if .Values.agent.caSecret -}}{{ .Values.agent.caSecret }}
{{- else if or .Values.daemon.enabled (eq .Values.tls.mode "existing") -}}{{ include "rollcall.daemonSecret" . }}
{{- else -}}
{{- fail "daemon.enabled is false, so the chart does not know the authority of the daemon's certificate: make a secret with its ca.crt in this namespace and name it:  --set agent.caSecret=NAME" -}}
{{- end -}}
{{- end -}}

{{/* The tokens of agents name their node since Kubernetes 1.30. */}}
{{- define "rollcall.agentGrant" -}}
agent=sub:system:serviceaccount:{{ .Release.Namespace }}:{{ include "rollcall.name" . }}-agent,tenant=*
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version }},host=*{{ end }}
{{- end -}}
