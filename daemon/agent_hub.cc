// SPDX-License-Identifier: Apache-2.0
#include "daemon/agent_hub.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr size_t kMaxNamedHosts = 5;  // in a line of the log
// The share of the machine. The rest is for diagnoses, pages and others.
constexpr double kShareForTicks = 0.4;
// Agents whose job may hang tick at least this often, so that the verdict comes in time. They are
// few: the others keep the pace that the machine can bear.
constexpr int64_t kUrgentTickNs = kSecond / 2;
constexpr double kUsualShare = 0.5;   // of the ticks, for the pace
constexpr size_t kUrgentShare = 8;    // one agent of so many
constexpr size_t kUrgentAgents = 64;  // may always be urgent

double ProcessCpuSeconds() {
  return static_cast<double>(ReadClockNs(CLOCK_PROCESS_CPUTIME_ID)) / kSecond;
}

HostFactsDesk::Send SendBy(AgentService* agents) {
  return [agents](const std::string& agent, const v1::DaemonMessage& message) {
    return agents->Send(agent, message);
  };
}

}  // namespace

AgentHub::AgentHub(const Parts& parts, int64_t silent_after_ns,
                   std::function<std::string()> address)
    : parts_(parts),
      silent_after_ns_(silent_after_ns),
      address_(std::move(address)),
      stacks_(SendBy(parts.agents), parts.store, parts.incidents, parts.timeline, parts.counters),
      looks_(SendBy(parts.agents), &unrecorded_),
      host_facts_(SendBy(parts.agents), parts.store, parts.incidents, parts.counters,
                  parts.timeline),
      host_hangs_(SendBy(parts.agents)),
      pace_(std::thread::hardware_concurrency() * kShareForTicks) {}

void AgentHub::OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
                      std::function<void()> applied) {
  RoutedTick routed = parts_.store->places()->Route(agent, *tick, parts_.timeline->Now());
  CountLeftOut(routed.origin, *tick);
  if (routed.must_restart) parts_.agents->Restart(agent.id);
  if (!routed.not_owned.empty()) SeekOwners(agent, routed);
  const AgentBook::Origin origin = routed.origin;
  const bool is_whole = tick->whole();
  SendPace(agent, origin);
  parts_.runners->Post(std::make_shared<TickInTransit>(
      std::move(tick), std::move(routed),
      [this, origin, whole = is_whole, applied = std::move(applied)] {
        parts_.store->agents()->Applied(origin);
        ++ticks_;
        applied();
        if (whole) EndTurn(AgentBook::Name(origin.agent).id);
      }));
}

void AgentHub::OnStackReply(const AgentName& agent, const v1::StackReply& reply) {
  if (!looks_.OnStackReply(agent, reply)) stacks_.OnStackReply(agent, reply);
}

void AgentHub::OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) {
  unrecorded_.Set(agent, list);
}

void AgentHub::OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) {
  if (!looks_.OnHostFacts(agent, reply)) host_facts_.OnReply(agent, reply);
}

void AgentHub::OnRanks(const AgentName& agent, const v1::LookAtRanksReply& reply) {
  looks_.OnRanks(agent, reply);
}

void AgentHub::OnConnected(const AgentName& agent) {
  spdlog::debug("the agent of {} connected", agent.host);
  parts_.store->agents()->Connected(agent);
  unrecorded_.Remove(agent.id);  // a stream begins without a list
  host_hangs_.Connected(agent);
  {
    const MutexLock lock(turns_mutex_);
    turns_.Add(agent.id);
  }
  BeginTurns();
}

void AgentHub::OnDisconnected(const AgentName& agent) {
  spdlog::debug("the agent of {} disconnected", agent.host);
  for (const std::string& refused : parts_.store->agents()->Disconnected(agent))
    parts_.agents->Restart(refused);
  host_hangs_.Disconnected(agent);
  if (!parts_.store->agents()->IsConnected(agent.id)) unrecorded_.Remove(agent.id);
  {
    const MutexLock lock(turns_mutex_);
    // Under the mutex: a new stream of the agent may be about to ask for a turn.
    if (parts_.store->agents()->IsConnected(agent.id)) {
      turns_.Done(agent.id);
    } else {
      turns_.Gone(agent.id);
    }
  }
  BeginTurns();
}

void AgentHub::MarkSilent(int64_t now_ns, int64_t own_lateness_ns) {
  std::vector<std::string> silent =
      parts_.store->agents()->MarkSilent(now_ns, silent_after_ns_ + own_lateness_ns);
  const uint64_t forgotten = parts_.store->agents()->TakeForgotten();
  if (forgotten != 0) parts_.counters->CountDropped(Dropped::kHosts, forgotten);
  if (parts_.fleet != nullptr && !silent.empty()) {
    // An agent leaves a daemon that has none of its host's jobs.
    const std::set<std::string> busy = parts_.store->places()->Hosts();
    const auto is_idle = [&](const std::string& host) { return busy.count(host) == 0; };
    silent.erase(std::remove_if(silent.begin(), silent.end(), is_idle), silent.end());
  }
  if (silent.empty()) return;
  const size_t count = silent.size();
  if (count > kMaxNamedHosts) {
    silent.resize(kMaxNamedHosts);
    silent.emplace_back("...");
  }
  spdlog::warn(
      "received no tick from {} for {} s ({}): their ranks are now silent; check the hosts and "
      "their agents",
      count == 1 ? "an agent" : absl::StrCat(count, " agents"), silent_after_ns_ / kSecond,
      absl::StrJoin(silent, ", "));
}

void AgentHub::UpdatePace(int64_t now_ns) {
  const double cpu_seconds = ProcessCpuSeconds();
  const int64_t oldest_ns = parts_.store->agents()->OldestUnapplied();
  const int64_t late_ns = parts_.store->agents()->UsualLateness(now_ns, kUsualShare);
  const TickPace::Load load = {parts_.agents->agents(), ticks_.exchange(0),
                               cpu_seconds - cpu_seconds_,
                               std::max(oldest_ns == 0 ? 0 : now_ns - oldest_ns, late_ns)};
  tick_ns_ = pace_.Update(load);
  parts_.store->SetUrgent(parts_.incidents->reader().OpenJobs(),
                          std::max(kUrgentAgents, static_cast<size_t>(load.agents) / kUrgentShare));
  cpu_seconds_ = cpu_seconds;
}

// Each agent gets a new pace with its next tick, so that they do not all change in one instant.
void AgentHub::SendPace(const AgentName& agent, const AgentBook::Origin& origin) {
  const int64_t pace_ns = tick_ns_;
  const int64_t tick_ns =
      std::max(origin.is_urgent ? std::min(pace_ns, kUrgentTickNs) : pace_ns, agent.tick_ns);
  if (agent.is_trusted || origin.tick_ns == tick_ns) return;
  v1::DaemonMessage message;
  message.mutable_pace()->set_tick_ns(tick_ns);
  if (parts_.agents->Send(agent.id, message)) parts_.store->agents()->SetPace(agent.id, tick_ns);
}

void AgentHub::CountLeftOut(const AgentBook::Origin& origin, const v1::Tick& tick) {
  const AgentBook::LeftOut fresh = parts_.store->agents()->RecordLeftOut(
      origin, {tick.dropped_ticks(), tick.left_out_segments()});
  if (fresh.broken_streams != 0) parts_.counters->CountBrokenStreams(fresh.broken_streams);
  if (fresh.segments != 0) parts_.counters->CountDropped(Dropped::kSegments, fresh.segments);
}

void AgentHub::EndTurn(const std::string& agent) {
  {
    const MutexLock lock(turns_mutex_);
    turns_.Done(agent);
  }
  BeginTurns();
}

void AgentHub::BeginTurns() {
  while (true) {
    std::vector<std::string> next;
    {
      const MutexLock lock(turns_mutex_);
      next = turns_.Next(parts_.timeline->Now());
    }
    if (next.empty()) return;
    for (const std::string& agent : next) {
      if (Welcome(agent)) continue;
      const MutexLock lock(turns_mutex_);
      turns_.Done(agent);
    }
  }
}

// False if the agent is gone.
bool AgentHub::Welcome(const std::string& agent) {
  v1::DaemonMessage message;
  message.mutable_welcome()->set_rollcall_version(ROLLCALL_VERSION);
  message.mutable_welcome()->set_whole_records(parts_.store->RecordsInWholeTicks());
  message.mutable_welcome()->set_reads_short_columns(true);
  if (parts_.fleet != nullptr) {
    message.mutable_welcome()->set_address(address_());
    for (const DaemonRow& daemon : parts_.fleet->members().Daemons()) {
      message.mutable_welcome()->add_daemons(daemon.address);
    }
  }
  if (!parts_.agents->Send(agent, message)) return false;
  parts_.store->agents()->Welcomed(agent, parts_.timeline->Now());
  return true;
}

void AgentHub::TellHostHangs() {
  const int64_t now_ns = parts_.timeline->Now();
  if (now_ns - told_hangs_ns_ < kSecond || !host_hangs_.HasAgents()) return;
  told_hangs_ns_ = now_ns;
  host_hangs_.Update(parts_.incidents->reader().BlamedHosts());
}

void AgentHub::SeekOwners(const AgentName& agent, const RoutedTick& routed) {
  for (const auto& [job, reported] : routed.not_owned) {
    const bool is_sought =
        parts_.fleet->Seek({job, agent.id, agent.follows_owners, reported.first, reported.second});
    if (!is_sought) parts_.counters->CountDropped(Dropped::kJobs, 1);
  }
}

void AgentHub::Close() {
  looks_.Close();
  stacks_.Close();
}

}  // namespace rollcall
