// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "base/log/limited_log.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "daemon/access/daemon_security.h"
#include "daemon/web/http.h"
#include "rollcall/v1/agent.pb.h"
#include "security/grpc/credentials.h"

namespace rollcall {
namespace {

// For the diagnosis after the agents' last ticks.
constexpr std::chrono::seconds kLastDiagnosisWithin{2};
constexpr size_t kMaxNamedHosts = 5;      // in a line of the log
constexpr size_t kMostAuditBytes = 4096;  // of what an operator acts on

constexpr int64_t kPaceEveryNs = kSecond;
// A daemon with more load than it can carry is late, and not dead.
constexpr int64_t kDeadAfterNs = 30 * kSecond;
// Of the machine. The rest is for diagnoses, pages and others.
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

int CountWorkers() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, 64u));
}

// So that the daemons of one database know each other. An embedded daemon has no address.
std::unique_ptr<Fleet> MakeFleet(const DaemonOptions& options) {
  if (options.database.url.empty() || options.listen.empty()) return nullptr;
  FleetOptions fleet;
  fleet.database = options.database;
  fleet.limits = options.history_limits;
  fleet.alone_file = options.history + ".alone";
  return std::make_unique<Fleet>(std::move(fleet));
}

std::unique_ptr<FleetQueries> MakeFleetQueries(const DaemonOptions& options, Fleet* fleet,
                                               Queries* own) {
  if (fleet == nullptr) return nullptr;
  PeerOptions peers;
  if (options.security != nullptr) peers.tls = options.security->shared_tls();
  return std::make_unique<FleetQueries>(own, fleet, std::move(peers));
}

IncidentBookOptions BookOptions(const DaemonOptions& options, const Fleet* fleet) {
  IncidentBookOptions book;
  book.limits = options.limits;
  book.report_dir = options.report_dir;
  book.keep_reports = options.keep_reports;
  book.history.path = options.history;
  book.history.is_optional = options.history_is_optional;
  book.history.limits = options.history_limits;
  book.history.database = options.database;
  book.alerts = options.alerts;
  book.quota = options.incident_quota;
  book.remind_every_ns = options.remind_every_ns;
  book.host_labels = options.host_labels;
  book.log_incidents = options.log_incidents;
  book.ownership = fleet;
  if (fleet != nullptr) {
    book.history.database.incarnation = fleet->incarnation();
    book.history.token_of = [fleet](const JobId& job) { return fleet->TokenOf(job); };
    book.history.is_unproven = [fleet](const JobId& job) { return fleet->IsUnproven(job); };
  }
  return book;
}

}  // namespace

Limits LimitsFor(int64_t hang_after_ns) {
  Limits limits;
  limits.hang_after_ns = hang_after_ns;
  limits.suspect_after_ns = std::min(hang_after_ns / 2, 15 * kSecond);
  limits.suspect_floor_ns = std::min(hang_after_ns / 2, 5 * kSecond);
  limits.absent_for_good_ns = std::min(hang_after_ns, 5 * kSecond);
  limits.stacks_apart_ns = std::clamp(hang_after_ns / 6, kSecond, 5 * kSecond);
  return limits;
}

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      fleet_(MakeFleet(options_)),
      store_(options_.default_job, options_.job_limits, &counters_),
      access_(options_.authenticator, &refusals_, &failed_logins_),
      agents_(this, &counters_, &access_, options_.stream_limits),
      incidents_(BookOptions(options_, fleet_.get()), &timeline_, &counters_),
      stacks_([this](const std::string& agent,
                     const v1::DaemonMessage& message) { return agents_.Send(agent, message); },
              &store_, &incidents_, &timeline_, &counters_),
      looks_([this](const std::string& agent,
                    const v1::DaemonMessage& message) { return agents_.Send(agent, message); },
             &unrecorded_),
      host_facts_([this](const std::string& agent,
                         const v1::DaemonMessage& message) { return agents_.Send(agent, message); },
                  &store_, &incidents_, &counters_, &timeline_),
      host_hangs_([this](const std::string& agent, const v1::DaemonMessage& message) {
        return agents_.Send(agent, message);
      }),
      pairs_(&store_),
      runners_({&store_, &incidents_, &stacks_, &rates_, &counters_, &timeline_, &host_facts_,
                fleet_.get(), &pairs_, options_.recorders},
               {options_.limits, options_.tick_ns, options_.keep_ended_ns}, CountWorkers()),
      queries_({&store_, &incidents_, &stacks_, &agents_, &rates_, &past_views_, &counters_,
                &timeline_, &refusals_, options_.security, &unrecorded_, &looks_}),
      fleet_queries_(MakeFleetQueries(options_, fleet_.get(), &queries_)),
      past_views_keeper_(&queries_, &store_, &timeline_, &past_views_),
      query_service_(
          all_queries(), &access_, [this](const AuditEntry& event) { Audit(event); },
          [this](const AuditEntry& event) { AuditRefusal(event); }),
      unknown_calls_(&access_),
      lateness_(options_.silent_after_ns),
      pace_(std::thread::hardware_concurrency() * kShareForTicks) {
  // The detector costs each lock of gRPC a pass through one mutex of the whole process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Start() {
  absl::Status status = incidents_.Start();
  if (status.ok()) {
    store_.ExpectHosts(incidents_.CountKnownHosts());
    store_.places()->RestoreAttempts(incidents_.ConsumeAttempts());
    store_.places()->SetOwnership(fleet_.get());
    if (fleet_ != nullptr) access_.SetPeerSecret(fleet_->secret());
    access_.SetRefused([this](const AuditEntry& event) { AuditRefusal(event); });
    access_.SetLocal([this](const std::string& peer) { return server_.LocalAddressOf(peer); });
    access_.SetKnown([this](const std::string& peer) { server_.Admit(peer); });
    status = server_.Start(options_.listen, Credentials(),
                           {agents_.service(), query_service_.service()}, unknown_calls_.service(),
                           HasTls(), [this](const std::string& reason, const std::string& text) {
                             refusals_.Count(reason, text);
                           });
  }
  if (!status.ok()) return status;
  status = StartHttp();
  if (!status.ok()) {
    Stop();
    return status;
  }
  StartFleet();
  thread_ = std::thread([this] { Run(); });
  views_thread_ = std::thread([this] { past_views_keeper_.Run(&stop_); });
  if (!options_.database.url.empty()) silences_thread_ = std::thread([this] { KeepSilences(); });
  return status;
}

bool Daemon::HasTls() const {
  return options_.security != nullptr && options_.security->tls() != nullptr;
}

std::shared_ptr<grpc::ServerCredentials> Daemon::Credentials() const {
  if (!HasTls()) return grpc::InsecureServerCredentials();
  return MakeServerCredentials(*options_.security->tls(), ClientCertificate::kOptional);
}

absl::Status Daemon::StartHttp() {
  if (options_.http.empty()) return absl::OkStatus();
  HttpServerOptions http;
  http.token = options_.http_token;
  http.connections = options_.http_connections;
  const bool only_by_token = !options_.http_token.empty() && !options_.http_token_is_optional;
  http.authenticator = only_by_token ? nullptr : options_.authenticator;
  if (options_.security != nullptr) {
    http.tls = options_.security->page_tls();
    http.is_insecure = options_.security->is_insecure();
  }
  http.failed_logins = &failed_logins_;
  http.web_config = options_.http_config;
  http.hosts = options_.http_hosts;
  http.page_url = options_.alerts.page;
  http.audit = [this](const AuditEntry& entry) { Audit(entry); };
  http.refused_action = [this](const AuditEntry& entry) { AuditRefusal(entry); };
  http.refused = [this](std::string_view reason) { refusals_.Count(std::string(reason)); };
  http.over_share = [this](const Owner& viewer) {
    counters_.CountOverShare(Dropped::kViewers, viewer);
  };
  http.problem = [this] {
    return std::string(server_.IsStarved() ? "agents cannot connect: no file descriptor is free"
                                           : "");
  };
  http_ = std::make_unique<HttpServer>(all_queries(), std::move(http));
  absl::Status status = http_->Start(options_.http);
  if (!status.ok()) http_.reset();
  return status;
}

void Daemon::Stop() {
  incidents_.BeginStop();
  stop_.Stop();
  if (fleet_queries_ != nullptr) fleet_queries_->Close();
  const SteadyTime begun = std::chrono::steady_clock::now();
  if (thread_.joinable()) thread_.join();
  if (views_thread_.joinable()) views_thread_.join();
  if (silences_thread_.joinable()) silences_thread_.join();
  incidents_.Finish(begun);
  // What it knew is in the database: another daemon may take its jobs.
  if (fleet_ != nullptr) fleet_->Stop();
  runners_.Stop();
  looks_.Close();
  stacks_.Close();  // a query that waits for stacks would delay the servers' stop
  if (http_ != nullptr) http_->Stop();
  agents_.CloseAll();
  server_.Stop();
}

std::string Daemon::page_url() const {
  const bool has_tls = http_ != nullptr && http_->has_tls();
  return absl::StrCat(has_tls ? "https://" : "http://", http_address(), "/");
}

std::string Daemon::http_address() const { return http_ == nullptr ? "" : http_->address(); }

std::vector<v1::Incident> Daemon::GetIncidents(const std::string& job) const {
  return incidents_.All(job);
}

void Daemon::Run() {
  do {
    Tick();
    const int64_t due_ns = SteadyNs() + options_.tick_ns;
    if (stop_.SleepFor(options_.tick_ns)) break;
    lateness_.Add(due_ns, SteadyNs());
  } while (true);
  runners_.Finish(std::chrono::steady_clock::now() + kLastDiagnosisWithin);
  Publish();
}

void Daemon::Tick() {
  ran_ns_ = SteadyNs();
  const int64_t now_ns = timeline_.Now();
  MarkSilentAgents(now_ns);
  if (now_ns - pace_updated_ns_ >= kPaceEveryNs) {
    UpdatePace(now_ns);
    if (options_.security != nullptr) options_.security->Poll(time(nullptr));
    spdlog::default_logger()->flush();  // it says how many lines it left out
    runners_.DropForgotten();
    runners_.Pulse();
  }
  if (now_ns - callers_checked_ns_ >= options_.check_callers_every_ns) {
    callers_checked_ns_ = now_ns;
    agents_.EndInvalid(time(nullptr));
  }
  BeginTurns();
  Publish();
}

bool Daemon::IsAlive() const {
  return SteadyNs() - std::min<int64_t>(ran_ns_, runners_.PulsedAt()) < kDeadAfterNs;
}

void Daemon::Audit(const AuditEntry& event) {
  // A caller may name as many hosts as a request holds.
  const std::string object = CutText(event.object, kMostAuditBytes, "...");
  // Lines that agents and strangers cause must not hide what an operator does.
  LogAlways(absl::StrCat("audit: ", CleanText(event.who), " (", event.peer, "): ", event.action,
                         ", ", CleanText(object)));
  incidents_.SaveAction(
      {timeline_.ToWallTime(timeline_.Now()), event.who, event.action, object, event.peer});
}

// `event.object`: why it was refused.
void Daemon::AuditRefusal(const AuditEntry& event) {
  const std::optional<uint64_t> left_out =
      refused_actions_.Take(event.who, event.action, SteadyNs());
  if (!left_out.has_value()) return;
  const std::string more =
      *left_out == 0 ? "" : absl::StrCat(" (and ", *left_out, " more since the last line)");
  Audit({event.who, absl::StrCat("refused: ", event.action), absl::StrCat(event.object, more),
         event.peer});
}

void Daemon::Publish() {
  incidents_.Publish();
  TellHostHangs();
  store_.places()->RestoreAttempts(incidents_.ConsumeAttempts());
  incidents_.SaveAttempts(store_.places()->TakeAttemptChanges(incidents_.ConsumeAttemptsToSave()));
}

void Daemon::TellHostHangs() {
  const int64_t now_ns = timeline_.Now();
  if (now_ns - told_hangs_ns_ < kSecond || !host_hangs_.HasAgents()) return;
  told_hangs_ns_ = now_ns;
  host_hangs_.Update(incidents_.BlamedHosts());
}

void Daemon::MarkSilentAgents(int64_t now_ns) {
  std::vector<std::string> silent =
      store_.agents()->MarkSilent(now_ns, options_.silent_after_ns + lateness_.Total());
  const uint64_t forgotten = store_.agents()->TakeForgotten();
  if (forgotten != 0) counters_.CountDropped(Dropped::kHosts, forgotten);
  if (fleet_ != nullptr && !silent.empty()) LeaveOutIdle(&silent);
  if (silent.empty()) return;
  const size_t count = silent.size();
  if (count > kMaxNamedHosts) {
    silent.resize(kMaxNamedHosts);
    silent.emplace_back("...");
  }
  spdlog::warn(
      "received no tick from {} for {} s ({}): their ranks are now silent; check the hosts and "
      "their agents",
      count == 1 ? "an agent" : absl::StrCat(count, " agents"), options_.silent_after_ns / kSecond,
      absl::StrJoin(silent, ", "));
}

void Daemon::UpdatePace(int64_t now_ns) {
  const double cpu_seconds = ProcessCpuSeconds();
  const int64_t oldest_ns = store_.agents()->OldestUnapplied();
  const int64_t late_ns = store_.agents()->UsualLateness(now_ns, kUsualShare);
  const TickPace::Load load = {agents_.agents(), ticks_.exchange(0), cpu_seconds - cpu_seconds_,
                               std::max(oldest_ns == 0 ? 0 : now_ns - oldest_ns, late_ns)};
  tick_ns_ = pace_.Update(load);
  store_.SetUrgent(incidents_.OpenJobs(),
                   std::max(kUrgentAgents, static_cast<size_t>(load.agents) / kUrgentShare));
  cpu_seconds_ = cpu_seconds;
  pace_updated_ns_ = now_ns;
}

// Each agent gets a new pace with its next tick, so that they do not all change in one instant.
void Daemon::SendPace(const AgentName& agent, const AgentBook::Origin& origin) {
  const int64_t pace_ns = tick_ns_;
  const int64_t tick_ns =
      std::max(origin.is_urgent ? std::min(pace_ns, kUrgentTickNs) : pace_ns, agent.tick_ns);
  if (agent.is_trusted || origin.tick_ns == tick_ns) return;
  v1::DaemonMessage message;
  message.mutable_pace()->set_tick_ns(tick_ns);
  if (agents_.Send(agent.id, message)) store_.agents()->SetPace(agent.id, tick_ns);
}

void Daemon::CountLeftOut(const AgentBook::Origin& origin, const v1::Tick& tick) {
  const AgentBook::LeftOut fresh =
      store_.agents()->RecordLeftOut(origin, {tick.dropped_ticks(), tick.left_out_segments()});
  if (fresh.broken_streams != 0) counters_.CountBrokenStreams(fresh.broken_streams);
  if (fresh.segments != 0) counters_.CountDropped(Dropped::kSegments, fresh.segments);
}

void Daemon::OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
                    std::function<void()> applied) {
  RoutedTick routed = store_.places()->Route(agent, *tick, timeline_.Now());
  CountLeftOut(routed.origin, *tick);
  if (routed.must_restart) agents_.Restart(agent.id);
  if (!routed.not_owned.empty()) SeekOwners(agent, routed);
  const AgentBook::Origin origin = routed.origin;
  const bool is_whole = tick->whole();
  SendPace(agent, origin);
  runners_.Post(std::make_shared<TickInTransit>(
      std::move(tick), std::move(routed),
      [this, origin, whole = is_whole, applied = std::move(applied)] {
        store_.agents()->Applied(origin);
        ++ticks_;
        applied();
        if (whole) EndTurn(AgentBook::Name(origin.agent).id);
      }));
}

void Daemon::EndTurn(const std::string& agent) {
  {
    const MutexLock lock(turns_mutex_);
    turns_.Done(agent);
  }
  BeginTurns();
}

void Daemon::BeginTurns() {
  while (true) {
    std::vector<std::string> next;
    {
      const MutexLock lock(turns_mutex_);
      next = turns_.Next(timeline_.Now());
    }
    if (next.empty()) return;
    for (const std::string& agent : next) {
      if (Welcome(agent)) continue;
      const MutexLock lock(turns_mutex_);
      turns_.Done(agent);
    }
  }
}

// False: the agent is gone.
bool Daemon::Welcome(const std::string& agent) {
  v1::DaemonMessage message;
  message.mutable_welcome()->set_rollcall_version(ROLLCALL_VERSION);
  message.mutable_welcome()->set_whole_records(store_.RecordsInWholeTicks());
  message.mutable_welcome()->set_reads_short_columns(true);
  if (fleet_ != nullptr) {
    message.mutable_welcome()->set_address(Address());
    for (const DaemonRow& daemon : fleet_->Daemons()) {
      message.mutable_welcome()->add_daemons(daemon.address);
    }
  }
  if (!agents_.Send(agent, message)) return false;
  store_.agents()->Welcomed(agent, timeline_.Now());
  return true;
}

void Daemon::OnStackReply(const AgentName& agent, const v1::StackReply& reply) {
  if (!looks_.OnStackReply(agent, reply)) stacks_.OnStackReply(agent, reply);
}

void Daemon::OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) {
  unrecorded_.Set(agent, list);
}

void Daemon::OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) {
  host_facts_.OnReply(agent, reply);
}

void Daemon::OnConnected(const AgentName& agent) {
  spdlog::debug("the agent of {} connected", agent.host);
  store_.agents()->Connected(agent);
  unrecorded_.Remove(agent.id);  // a stream begins without a list
  host_hangs_.Connected(agent);
  {
    const MutexLock lock(turns_mutex_);
    turns_.Add(agent.id);
  }
  BeginTurns();
}

void Daemon::OnDisconnected(const AgentName& agent) {
  spdlog::debug("the agent of {} disconnected", agent.host);
  for (const std::string& refused : store_.agents()->Disconnected(agent)) agents_.Restart(refused);
  host_hangs_.Disconnected(agent);
  if (!store_.agents()->IsConnected(agent.id)) unrecorded_.Remove(agent.id);
  {
    const MutexLock lock(turns_mutex_);
    // Under the mutex: a new stream of the agent may be about to ask for a turn.
    if (store_.agents()->IsConnected(agent.id)) {
      turns_.Done(agent.id);
    } else {
      turns_.Gone(agent.id);
    }
  }
  BeginTurns();
}

}  // namespace rollcall
