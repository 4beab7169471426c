// SPDX-License-Identifier: Apache-2.0
// The processes of a job, their texts, and the agents that report them.
#include <algorithm>
#include <utility>

#include "base/cut_text.h"
#include "daemon/model/job_model.h"
#include "daemon/model/process_texts.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr int64_t kNotableSuspensionNs = 1'000'000'000;
constexpr int64_t kGoOnWithinNs = 2'000'000'000;
constexpr size_t kMostSuspensions = 16;
constexpr int64_t kQuietIntervalNs = 2'000'000'000;
constexpr double kQuietCpus = 0.1;

// Excludes the allocator's own bytes.
size_t SiteBytes(const std::string& site) { return sizeof(site) + site.size(); }

size_t CountStates(const std::vector<NetworkSample>& samples) {
  size_t states = 0;
  for (const NetworkSample& sample : samples) states += sample.states.size();
  return states;
}

bool SameBlocked(const BlockedCall& a, const BlockedCall& b) {
  return a.thread == b.thread && a.op == b.op && a.communicator == b.communicator &&
         a.since_ns == b.since_ns && a.rank == b.rank && a.key == b.key;
}

bool SameCaller(const CallingThread& a, const CallingThread& b) {
  return a.thread == b.thread && a.tid == b.tid && a.name == b.name;
}

// True if the rules on communicators see no difference.
bool SameForRules(const Process& process, const ProcessEvidence& evidence) {
  return process.liveness == evidence.liveness && process.state == evidence.state &&
         process.ended_ns == evidence.ended_ns && process.error == evidence.error &&
         process.thread_failure.failed_ns == evidence.thread_failure.failed_ns &&
         IsSuspended(process) == IsSuspended(evidence) &&
// The rules use only whether a count is 0, so counts may rise with every call.
#define PROCESS_COUNT(name) (process.name != 0) == (evidence.name != 0) &&
#include "proto/facts.def"
         std::equal(process.blocked.begin(), process.blocked.end(), evidence.blocked.begin(),
                    evidence.blocked.end(), SameBlocked) &&
         std::equal(process.callers.begin(), process.callers.end(), evidence.callers.begin(),
                    evidence.callers.end(), SameCaller);
}

}  // namespace

void JobModel::LimitText(size_t most, std::string* text) {
  if (text->size() <= most) return;
  *text = CutText(*text, most);
  Count(Dropped::kTexts);
}

void JobModel::LimitPlace(StackPlace* place) {
  LimitText(limits::kSite, &place->at);
  LimitText(limits::kName, &place->inside);
  LimitText(limits::kStackWords, &place->functions);
  LimitText(limits::kName, &place->handles.type);
  LimitText(limits::kError, &place->handles.text);
  LimitText(limits::kSite, &place->handles.at);
  LimitText(limits::kName, &place->key);
  if (place->other_end.size() > limits::kOtherEnds) place->other_end.resize(limits::kOtherEnds);
}

// For a process whose texts have changed: drops what has no room.
void JobModel::CountTexts(int32_t process) {
  Process* known = &state_.processes[static_cast<size_t>(process)];
  size_t* counted = &text_bytes_[static_cast<size_t>(process)];
  ShrinkTexts(known);
  const size_t bytes = TextBytes(*known);
  if (bytes == *counted) return;
  if (bytes > *counted && !share_->HasRoomForText(bytes - *counted)) {
    const DroppedTexts dropped = DropTexts(*counted, known);
    for (size_t i = 0; i < dropped.texts; ++i) Count(Dropped::kTexts);
    if (dropped.blocked_calls) Count(Dropped::kBlockedCalls);
  }
  share_->text_bytes().Remove(*counted);
  *counted = TextBytes(*known);
  share_->text_bytes().Add(*counted);
}

int32_t JobModel::AddProcess(const std::string& host, int32_t pid, uint64_t start_time) {
  if (state_.processes.size() >= limits::kProcessesOfJob) {
    const auto known = processes_.find(ProcessKey{host, pid, start_time});
    if (known == processes_.end()) Count(Dropped::kProcesses);
    return known == processes_.end() ? -1 : known->second;
  }
  const auto [at, is_new] = processes_.emplace(ProcessKey{host, pid, start_time},
                                               static_cast<int32_t>(state_.processes.size()));
  if (!is_new) return at->second;
  Process process;
  process.host = host;
  process.pid = pid;
  process.start_time = start_time;
  state_.processes.push_back(std::move(process));
  seats_.emplace_back();
  text_bytes_.push_back(0);
  before_silence_.push_back(Liveness::kUnknown);
  ++version_;
  return at->second;
}

void JobModel::SetIdentity(int32_t process, const ProcessIdentity& identity) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  std::string host = identity.host.empty() ? known.host : identity.host;
  static_cast<ProcessIdentity&>(known) = identity;
  known.host = std::move(host);
  LimitText(limits::kName, &known.host);
  LimitText(limits::kName, &known.stacks_off);
#define PROCESS_TEXT(name) LimitText(limits::kCommand, &known.name);
#define PROCESS_PLACE(name) LimitText(limits::kCommand, &known.name);
#define PROCESS_DETAIL(name) LimitText(limits::kCommand, &known.name);
#include "proto/facts.def"
  CountTexts(process);
  Touch(process);
}

void JobModel::AddSites(int32_t process, size_t first, std::vector<std::string> sites) {
  if (!IsKnown(process)) return;
  std::vector<std::string>& known = state_.processes[static_cast<size_t>(process)].sites;
  if (first > known.size()) return;  // the agent will send a whole update
  CutSites(first, &known);
  for (std::string& site : sites) {
    LimitText(limits::kSite, &site);
    if (known.size() >= limits::kSites || !share_->HasRoomForSite(SiteBytes(site))) {
      Count(Dropped::kSites);
      break;  // the records refer to sites by their index
    }
    share_->site_bytes().Add(SiteBytes(site));
    known.push_back(std::move(site));
  }
  ++version_;
}

void JobModel::CutSites(size_t from, std::vector<std::string>* sites) {
  for (size_t i = from; i < sites->size(); ++i) share_->site_bytes().Remove(SiteBytes((*sites)[i]));
  sites->resize(from);
}

// A suspension of a moment delays nothing.
void JobModel::NoteSuspension(bool is_suspended, int64_t now_ns, Process* process) {
  if (is_suspended) {
    if (process->suspended_ns == 0) process->suspended_ns = now_ns;
    return;
  }
  const int64_t since_ns = std::exchange(process->suspended_ns, 0);
  if (since_ns == 0 || now_ns - since_ns < kNotableSuspensionNs) return;
  std::vector<Suspension>& all = process->suspensions;
  if (all.size() == kMostSuspensions) all.erase(all.begin());
  // The ranks of a job do not go on in one moment.
  all.push_back({since_ns, now_ns + kGoOnWithinNs});
}

// Loops that ask again and again and heartbeats use a trace of CPU time for ever.
void JobModel::NoteQuiet(double cpu_seconds, int64_t now_ns, Process* process) {
  const int64_t passed_ns = now_ns - process->counted_ns;
  if (process->counted_ns != 0 && passed_ns < kQuietIntervalNs) return;
  // An agent reports nothing of a process that does nothing.
  const auto counted = static_cast<double>(std::min(passed_ns, 2 * kQuietIntervalNs)) / 1e9;
  const double used = cpu_seconds - process->counted_cpu_seconds;
  if (process->quiet_since_ns == 0 || used > kQuietCpus * counted) process->quiet_since_ns = now_ns;
  process->counted_ns = now_ns;
  process->counted_cpu_seconds = cpu_seconds;
}

void JobModel::SetEvidence(int32_t process, const ProcessEvidence& evidence, int64_t now_ns) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  NoteSuspension(IsSuspended(evidence), now_ns, &known);
  NoteQuiet(evidence.cpu_seconds, now_ns, &known);
  const bool same = SameForRules(known, evidence);
  static_cast<ProcessEvidence&>(known) = evidence;
  LimitText(limits::kError, &known.error);
  LimitText(limits::kError, &known.thread_failure.error);
  LimitText(limits::kName, &known.thread_failure.thread);
  LimitText(limits::kName, &known.phase);
  LimitText(limits::kName, &known.wait_channel);
  if (known.blocked.size() > limits::kBlockedCalls) {
    Count(Dropped::kBlockedCalls);
    known.blocked.resize(limits::kBlockedCalls);
  }
  for (BlockedCall& call : known.blocked) LimitText(limits::kName, &call.key);
  if (known.callers.size() > limits::kCallers) known.callers.resize(limits::kCallers);
  for (CallingThread& caller : known.callers) LimitText(limits::kThreadName, &caller.name);
  CountTexts(process);
  known.silent_since_ns = 0;
  for (BlockedCall& call : known.blocked) call.communicator = ResolveId(call.communicator);
  if (same) {
    ++version_;
  } else {
    Touch(process);
  }
}

void JobModel::SetSilent(int32_t process, int64_t since_ns) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  if (HasEnded(known) || known.liveness == Liveness::kSilent) return;
  before_silence_[static_cast<size_t>(process)] = known.liveness;
  known.liveness = Liveness::kSilent;
  known.silent_since_ns = since_ns;
  Touch(process);
}

int32_t JobModel::AddAgent(const std::string& id, const std::string& host) {
  const auto known = agents_.find(id);
  if (known != agents_.end()) return known->second;
  int32_t index = FindLeftAgent(host);
  if (index >= 0) {
    agents_.erase(state_.agents[static_cast<size_t>(index)].id);
  } else if (agents_.size() < limits::kAgentsOfJob) {
    index = static_cast<int32_t>(state_.agents.size());
    state_.agents.emplace_back();
    processes_of_agents_.emplace_back();
    idle_agents_[host].insert(index);
  } else {
    Count(Dropped::kAgents);
    return -1;
  }
  AgentState& agent = state_.agents[static_cast<size_t>(index)];
  agent = AgentState();
  agent.id = id;
  agent.host = host;
  agents_.emplace(id, index);
  return index;
}

// Each restart of an agent is a new agent, and a job may live through many. -1 if there is none.
// Only an agent of the same host may follow: others count the hosts of a job by the number of its
// agents.
int32_t JobModel::FindLeftAgent(const std::string& host) const {
  const auto idle = idle_agents_.find(host);
  if (idle == idle_agents_.end()) return -1;
  for (const int32_t index : idle->second) {
    const AgentState& agent = state_.agents[static_cast<size_t>(index)];
    if (agent.stale || agent.silent) return index;
  }
  return -1;
}

void JobModel::SetAgent(int32_t process, int32_t agent) {
  if (!IsKnown(process) || agent < 0) return;
  int32_t& known = state_.processes[static_cast<size_t>(process)].agent;
  if (known == agent) return;
  if (known >= 0) {
    std::vector<int32_t>& before = processes_of_agents_[static_cast<size_t>(known)];
    before.erase(std::remove(before.begin(), before.end(), process), before.end());
    if (before.empty()) idle_agents_[state_.agents[static_cast<size_t>(known)].host].insert(known);
  }
  known = agent;
  std::vector<int32_t>& now = processes_of_agents_[static_cast<size_t>(agent)];
  if (now.empty()) SetBusy(agent);
  now.push_back(process);
  Touch(process);
}

void JobModel::SetBusy(int32_t agent) {
  const auto idle = idle_agents_.find(state_.agents[static_cast<size_t>(agent)].host);
  if (idle == idle_agents_.end()) return;
  idle->second.erase(agent);
  if (idle->second.empty()) idle_agents_.erase(idle);
}

void JobModel::SetAgentHeard(int32_t agent, const AgentHeard& heard) {
  AgentHeard& known = state_.agents[static_cast<size_t>(agent)];
  const bool same = known.stale == heard.stale && known.silent == heard.silent &&
                    known.is_settled == heard.is_settled;
  known = heard;
  if (same) return;
  for (const int32_t process : processes_of_agents_[static_cast<size_t>(agent)]) {
    if (HasEnded(state_.processes[static_cast<size_t>(process)])) continue;
    SetSilence(process, heard.silent, heard.heard_ns);
    Touch(process);
  }
}

// An agent that was stopped continues without a whole update: it reports only changes.
void JobModel::SetSilence(int32_t process, bool silent, int64_t since_ns) {
  if (silent) return SetSilent(process, since_ns);
  Process& known = state_.processes[static_cast<size_t>(process)];
  if (known.liveness != Liveness::kSilent) return;
  known.liveness = before_silence_[static_cast<size_t>(process)];
  known.silent_since_ns = 0;
}

void JobModel::SetOutside(const StackFacts& facts, Process* process) {
  if (!facts.children_at_work.has_value()) return;
  process->children_at_work = *facts.children_at_work;
  auto& children = process->children_at_work;
  const auto slow = std::remove_if(children.begin(), children.end(),
                                   [](const ChildAtWork& child) { return child.is_slow; });
  process->has_slow_children = slow != children.end();
  children.erase(slow, children.end());
  if (process->children_at_work.size() > limits::kChildrenAtWork) {
    process->children_at_work.resize(limits::kChildrenAtWork);
  }
  for (ChildAtWork& child : process->children_at_work) {
    LimitText(limits::kThreadName, &child.name);
  }
  process->receives = std::max(facts.receives, 0.0);
  const bool moves = !process->children_at_work.empty() || process->receives > 0;
  if (moves) process->outside_moved_ns = facts.now_ns;
}

void JobModel::SetNetwork(int32_t process, std::vector<NetworkSample> samples, int64_t read_ns) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  if (known.network != nullptr) network_states_ -= CountStates(*known.network);
  const size_t states = CountStates(samples);
  const bool has_room = states <= limits::kNetworkStatesOfJob - network_states_;
  known.network = nullptr;
  known.network_ns = 0;
  if (has_room) {
    network_states_ += states;
    known.network = std::make_shared<const std::vector<NetworkSample>>(std::move(samples));
    known.network_ns = read_ns;
  } else {
    Count(Dropped::kStacks);
  }
  Touch(process);
}

void JobModel::SetStacks(int32_t process, const StackFacts& facts) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  const std::string key_before = known.place.key;
  known.motion = facts.motion;
  known.stack_words = facts.words;
  LimitText(limits::kStackWords, &known.stack_words);
  known.place = facts.place;
  LimitPlace(&known.place);
  known.awaited_tids = facts.awaited_tids;
  if (known.awaited_tids.size() > limits::kCallers) known.awaited_tids.resize(limits::kCallers);
  known.thread_places = facts.threads;
  if (known.thread_places.size() > limits::kThreadPlaces) {
    known.thread_places.resize(limits::kThreadPlaces);
  }
  known.keepers = facts.keepers;
  if (known.keepers.size() > limits::kKeepers) known.keepers.resize(limits::kKeepers);
  for (std::vector<ThreadPlace>* places : {&known.thread_places, &known.keepers}) {
    for (ThreadPlace& thread : *places) {
      LimitText(limits::kThreadName, &thread.name);
      LimitPlace(&thread.place);
    }
  }
  SetOutside(facts, &known);
  if (facts.standing != nullptr) known.standing = facts.standing;
  CountTexts(process);
  known.stacks_ns = facts.asked_ns != 0 ? facts.asked_ns : facts.now_ns;
  if (!facts.waits_outside) {
    known.waits_outside_since_ns = 0;
  } else if (known.waits_outside_since_ns == 0 || known.place.key != key_before) {
    known.waits_outside_since_ns = facts.now_ns;
  }
  Touch(process);
}

void JobModel::Touch(int32_t process) {
  ++version_;
  for (const Seat& seat : seats_[static_cast<size_t>(process)]) {
    const auto comm = state_.communicators.find(seat.communicator);
    if (comm != state_.communicators.end()) comm->second.version = version_;
  }
}

}  // namespace rollcall
