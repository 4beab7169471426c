// SPDX-License-Identifier: Apache-2.0
// The fields of proto/rollcall/v1/query.proto and incident.proto that the page reads.

export interface GraphCall {
  graph: number;
  launch: number;
  call: number;
  calls: number;
}
export interface Call {
  position: number;
  operation: string;
  dtype: string;
  count: number;
  reduction: string;
  root: number;
  code: string;
  shape: string;
  logical: string;
  graph?: GraphCall;
}
export interface CommunicatorRef {
  id: string;
  name: string;
  size: number;
}
export interface Culprit {
  rank: number;
  host: string;
  pid: number;
  device: number;
  call?: Call;
  code: string;
  step?: number;
  phase: string;
  node: string;
  pod: string;
  container: string;
  inner_pid: number;
  gpu_uuid: string;
}
export interface AlignedCall {
  others?: Call;
  culprits?: Call;
  differs: boolean;
}
export interface WaitEdge {
  from: number[];
  to: number[];
  communicator?: CommunicatorRef;
  call?: Call;
  from_total: number;
  from_ranges: string;
  to_total: number;
  to_ranges: string;
}
export interface Verdict {
  cause: string;
  certainty: string;
  culprits: Culprit[];
  waiting_ranks: number[];
  communicator?: CommunicatorRef;
  call?: Call;
  mismatched_fields: string[];
  waited_seconds: number;
  summary: string;
  advice: { id: string; text: string }[];
  missing_evidence: string[];
  evidence: string[];
  is_consequence: boolean;
  divergence: string;
  histories: AlignedCall[];
  chain: WaitEdge[];
  late: boolean;
  step?: number;
  phase: string;
  culprits_total: number;
  culprit_ranks: string;
  culprit_hosts_total: number;
  waiting_total: number;
  waiting_rank_ranges: string;
  chain_total: number;
}
export interface Frame {
  function: string;
  module: string;
  file: string;
  line: number;
  address: string;
  python: boolean;
  interpreter: boolean;
}
export interface ThreadStack {
  tid: number;
  name: string;
  state: string;
  wait_channel: string;
  frames: Frame[];
  note: string;
  python_lock: string;
}
export interface ProcessStack {
  rank: number;
  host: string;
  pid: number;
  taken_at?: string;
  method: string;
  threads: ThreadStack[];
  error: string;
  culprit: boolean;
  cpu_seconds: number;
}
export interface HostFact {
  kind: string;
  subject: string;
  value: number;
  text: string;
  age_seconds: number;
  pid: number;
}
export interface HostFacts {
  host: string;
  gathered_at?: string;
  facts: HostFact[];
  error: string;
}
export interface StackNode {
  parent: number;
  frame: string;
  ranks: string;
  rank_count: number;
  threads: number;
  ending: number;
}
export interface StackTree {
  nodes: StackNode[];
  cut: boolean;
}
// `component` is "NCCL" or "librollcall", `ranks` is like "0-6".
export interface VersionInUse {
  component: string;
  version: string;
  ranks: string;
}
export interface Incident {
  id: string;
  job: string;
  tenant: string;
  attempt: number;
  state: string;
  opened_at?: string;
  confirmed_at?: string;
  closed_at?: string;
  verdicts: Verdict[];
  stacks: ProcessStack[];
  report_path: string;
  alert_held_back: boolean;
  rollcall_version: string;
  stack_tree?: StackTree;
  versions: VersionInUse[];
  host_facts: HostFacts[];
  host_facts_total: number;
  signature: string;
  recurrence?: IncidentGroup;
  notes: Note[];
  acknowledged?: { who: string; at?: string };
  silenced?: Silence;
}
// `job` and `host` are patterns; "": all.
export interface Silence {
  id: string;
  tenant: string;
  job: string;
  host: string;
  cause: string;
  who: string;
  since?: string;
  until?: string;
  comment: string;
  incidents: number;
}
export interface ListSilencesResponse {
  now?: string;
  silences: Silence[];
}
export interface Note {
  who: string;
  at?: string;
  text: string;
}
export interface Recurring {
  name: string;
  hangs: number;
}
export interface IncidentGroup {
  signature: string;
  tenant: string;
  hangs: number;
  first?: string;
  last?: string;
  hosts: Recurring[];
  ranks: Recurring[];
  jobs: Recurring[];
  newest: string;
  summary: string;
  sentence: string;
}
export interface IncidentSummary {
  id: string;
  state: string;
  cause: string;
  summary: string;
  opened_at?: string;
}
export interface CommunicatorStatus {
  id: string;
  name: string;
  size: number;
  members: number;
  position_min: number;
  position_max: number;
  waiting: number;
  waited_seconds: number;
  operation: string;
  laggards: number[];
  laggards_total: number;
  call?: Call;
}
export interface AttemptStatus {
  attempt: number;
  state: string;
  processes: number;
  processes_alive: number;
  processes_died: number;
  last_incident?: IncidentSummary;
  since: string;
  ended_at?: string;
}
export interface JobStatus {
  name: string;
  state: string;
  processes: number;
  processes_alive: number;
  communicators: CommunicatorStatus[];
  summary: string;
  hosts: string[];
  warnings: string[];
  ranks: number;
  calls_per_second: number;
  last_incident?: IncidentSummary;
  since: string;
  communicators_total: number;
  tenant: string;
  attempt: number;
  attempts: AttemptStatus[];
  ended_at?: string;
  daemon: string;
}
export interface StatusResponse {
  rollcall_version: string;
  now: string;
  jobs: JobStatus[];
  agents: number;
  jobs_total: number;
  silent_daemons: string[];
}
export interface RankMap {
  name: string;
  size: number;
  communicators: number;
  states: string;
}
export interface HostRun {
  host: string;
  first_rank: number;
  ranks: number;
}
export interface JobView {
  now: string;
  status: JobStatus;
  maps: RankMap[];
  hosts: HostRun[];
  calls_per_second: number[];
  culprits: number[];
  incident: string;
  kept_from?: string;
  is_kept: boolean;
}
export interface CallSpan {
  call: Call;
  entered_seconds: number;
  returned_seconds: number;
  gpu: string;
  waits: boolean;
}
export interface CommunicatorCalls {
  communicator: CommunicatorRef;
  rank_in_communicator: number;
  entered: number;
  finished: number;
  state: string;
  calls: CallSpan[];
}
export interface MemberView {
  rank: number;
  host: string;
  waited_seconds: number;
  calls?: CommunicatorCalls;
}
export interface CommunicatorView {
  now: string;
  status: CommunicatorStatus;
  members: MemberView[];
  total: number;
  missing_ranks: string;
}
export interface RankCalls {
  rank: number;
  communicators: CommunicatorCalls[];
}
export interface CallsResponse {
  now: string;
  ranks: RankCalls[];
}
export interface ProcessStatus {
  rank: number;
  host: string;
  pid: number;
  device: number;
  liveness: string;
  state: string;
  wait_channel: string;
  cpu_seconds: number;
  memory_bytes: number;
  exit_code: number;
  exit_signal: number;
  command: string;
  doing: string;
  doing_seconds: number;
  cpu_moving: boolean;
  node: string;
  pod: string;
  container: string;
  inner_pid: number;
  gpu_uuid: string;
  environment: string;
  stdout_to: string;
  stderr_to: string;
}
export interface ProcessesResponse {
  processes: ProcessStatus[];
  total: number;
}
export interface Repeated {
  host: string;
  rank: number;
  job: string;
  incidents: number;
  tenant?: string; // missing: a daemon of an older release
}
export interface IncidentsResponse {
  incidents: Incident[];
  total: number;
  repeated: Repeated[];
  note: string;
  groups: IncidentGroup[];
}
export interface IncidentCount {
  value: string;
  incidents: number;
  certain_incidents: number;
  lost_rank_seconds: number;
  newest: string;
  last?: string;
}
export interface QuestionsResponse {
  counts: IncidentCount[];
  total: number;
  note: string;
}
export interface StacksResponse {
  now: string;
  stacks: ProcessStack[];
  tree?: StackTree;
}
