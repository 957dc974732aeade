{{/* The prefix of all names: the release, with the chart's name unless it is in there. */}}
{{- define "entourage.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The labels by which a component's pods are selected. Argument: root, component. */}}
{{- define "entourage.selector" -}}
app.kubernetes.io/name: entourage-{{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* All labels of an object of a component; pods have no version, so that a new chart alone restarts none. Argument: root, component. */}}
{{- define "entourage.labels" -}}
{{ include "entourage.selector" . }}
app.kubernetes.io/part-of: entourage
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Name, namespace and labels. Argument: root, component. */}}
{{- define "entourage.metadata" -}}
name: {{ include "entourage.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "entourage.labels" . | nindent 2 }}
{{- end -}}

{{- define "entourage.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is empty: no image is published; build one with the Dockerfile and name it" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* The pod template of a component. Argument: root, component, values; args, ports, probes and account as YAML; tls if it serves by a
Secret of its own. */}}
{{- define "entourage.pod" -}}
{{- $values := .values -}}
metadata:
  labels:
    {{- include "entourage.selector" . | nindent 4 }}
    app.kubernetes.io/part-of: entourage
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if .account }}
  serviceAccountName: {{ .account }}
  {{- else }}
  # It needs nothing of the cluster that it runs in.
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .component }}
      image: {{ include "entourage.image" .root | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        {{- .args | nindent 8 }}
        - --log-format={{ .root.Values.log.format }}
        {{- if ne .root.Values.log.level "info" }}
        - {{ printf "--log-level=%s" .root.Values.log.level | quote }}
        {{- end }}
        {{- if and .root.Values.traces.endpoint (ne .component "proxy") }}
        - {{ printf "--trace-endpoint=%s" .root.Values.traces.endpoint | quote }}
        {{- if ne (toString .root.Values.traces.ratio) "1" }}
        - --trace-ratio={{ .root.Values.traces.ratio }}
        {{- end }}
        {{- end }}
        {{- range $values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- with $values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- .ports | nindent 8 }}
      {{- .probes | nindent 6 }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: hub
          mountPath: /etc/entourage/hub
          readOnly: true
        {{- if .tls }}
        - name: tls
          mountPath: /etc/entourage/tls
          readOnly: true
        {{- end }}
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: hub
      secret:
        secretName: {{ $values.hub.secretName }}
        defaultMode: 0440
    {{- with .tls }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $values.affinity }}
  affinity:
    {{- toYaml $values.affinity | nindent 4 }}
  {{- else if eq (default "off" $values.podAntiAffinity) "preferred" }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "entourage.selector" . | nindent 16 }}
  {{- else if eq (default "off" $values.podAntiAffinity) "required" }}
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "entourage.selector" . | nindent 14 }}
  {{- end }}
{{- end -}}

{{/* The probes of a component with a port for health. Argument: the path for readiness. */}}
{{- define "entourage.healthProbes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: {{ . }}
    port: health
  periodSeconds: 5
{{- end -}}

{{/* PodDisruptionBudget and NetworkPolicy. Argument: root, component, values, port; health if metrics have a port of their own. */}}
{{- define "entourage.policies" -}}
{{- $values := .values -}}
{{- if and $values.podDisruptionBudget (gt (int (default 1 $values.replicas)) 1) }}
{{- if $values.podDisruptionBudget.enabled }}
---
apiVersion: policy/{{ if semverCompare ">=1.21.0-0" .root.Capabilities.KubeVersion.Version }}v1{{ else }}v1beta1{{ end }}
kind: PodDisruptionBudget
metadata:
  {{- include "entourage.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ $values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "entourage.selector" . | nindent 6 }}
{{- end }}
{{- end }}
{{- if $values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "entourage.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "entourage.selector" . | nindent 6 }}
  policyTypes:
    - Ingress
    {{- if $values.networkPolicy.egress }}
    - Egress
    {{- end }}
  ingress:
    - ports:
        - port: {{ .port }}
          protocol: TCP
        {{- with .health }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}
      {{- with $values.networkPolicy.ingressFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- with $values.networkPolicy.egress }}
  egress:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* A Service before a component. Argument: root, component, values. */}}
{{- define "entourage.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "entourage.metadata" . | nindent 2 }}
  {{- with .values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .values.service.type }}
  {{- with .values.service.loadBalancerIP }}
  loadBalancerIP: {{ . }}
  {{- end }}
  selector:
    {{- include "entourage.selector" . | nindent 4 }}
  ports:
    - name: https
      port: {{ .values.service.port }}
      targetPort: https
{{- end -}}

{{/* A file of crds/ or config/, which the chart links to. A tool that copies a checkout without its links must not install less than all.
Argument: files, path. */}}
{{- define "entourage.file" -}}
{{- required (printf "the chart has no %s: its links were not followed; take a package, as helm package makes it" .path) (.files.Get .path) -}}
{{- end -}}

{{/* role.yaml, role_binding.yaml and, if there is one, service_account.yaml of a folder, as they are. Argument: files, folder. */}}
{{- define "entourage.rights" -}}
{{- $folder := printf "files/%s" .folder }}
{{- with .files.Get (printf "%s/service_account.yaml" $folder) }}
---
{{ . }}
{{- end }}
---
{{ include "entourage.file" (dict "files" .files "path" (printf "%s/role.yaml" $folder)) }}
---
{{ include "entourage.file" (dict "files" .files "path" (printf "%s/role_binding.yaml" $folder)) }}
{{- end -}}
