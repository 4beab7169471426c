#include "daemon/server/daemon.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/post_mortem.h"
#include "daemon/model/progress.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stack_places.h"
#include "daemon/server/clean_message.h"
#include "daemon/server/http.h"
#include "daemon/server/views/public_ranks.h"
#include "daemon/server/views/status.h"
#include "proto/steady_clock.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kMostMessageBytes = 64 << 20;
constexpr int64_t kStacksBeforeReportNs = 2 * kSecond;
constexpr size_t kIncidentsKept = 100;  // of one job
// Of kStopWithin: what the disk and alerts' receivers get. The rest is for gRPC and HTTP.
constexpr auto kReportsWithin = std::chrono::seconds(6);
constexpr auto kHistoryWithin = std::chrono::seconds(8);
constexpr auto kAlertsWithin = std::chrono::seconds(11);

// What the wall clock showed when something happened stays, however it was set since.
void KeepTimes(const v1::Incident& known, v1::Incident* incident) {
  if (known.has_opened_at()) *incident->mutable_opened_at() = known.opened_at();
  if (known.has_confirmed_at()) *incident->mutable_confirmed_at() = known.confirmed_at();
  if (known.has_closed_at()) *incident->mutable_closed_at() = known.closed_at();
}

bool AllEnded(const JobState& state) {
  return std::all_of(state.processes.begin(), state.processes.end(),
                     [](const Process& process) { return HasEnded(process); });
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

class Daemon::QueryService : public v1::Query::Service {
 public:
  explicit QueryService(Daemon* daemon) : daemon_(daemon) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest* request,
                         v1::StatusResponse* response) override {
    *response = daemon_->GetStatus(Cleaned(*request).job(), !request->without_communicators());
    return grpc::Status::OK;
  }

  grpc::Status ListIncidents(grpc::ServerContext*, const v1::ListIncidentsRequest* request,
                             v1::ListIncidentsResponse* response) override {
    return Answer(daemon_->ListIncidents(Cleaned(*request)), response);
  }

  grpc::Status GetIncident(grpc::ServerContext*, const v1::IncidentRequest* request,
                           v1::Incident* response) override {
    return Answer(daemon_->GetIncident(Cleaned(*request).id()), response);
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::JobRequest* request,
                      v1::JobView* response) override {
    return Answer(daemon_->GetJob(Cleaned(*request).job()), response);
  }

  grpc::Status GetCalls(grpc::ServerContext*, const v1::CallsRequest* request,
                        v1::CallsResponse* response) override {
    return Answer(daemon_->GetCalls(Cleaned(*request)), response);
  }

  grpc::Status ListProcesses(grpc::ServerContext*, const v1::ProcessesRequest* request,
                             v1::ProcessesResponse* response) override {
    return Answer(daemon_->ListProcesses(Cleaned(*request)), response);
  }

  grpc::Status TakeStacks(grpc::ServerContext* context, const v1::TakeStacksRequest* request,
                          grpc::ServerWriter<v1::ProcessStack>* writer) override {
    const absl::Status status = daemon_->TakeStacks(Cleaned(*request), [&](const v1::ProcessStack& stack) {
      return !context->IsCancelled() && writer->Write(stack);
    });
    if (status.ok()) return grpc::Status::OK;
    return {grpc::StatusCode::NOT_FOUND, std::string(status.message())};
  }

 private:
  // Names are kept clean, so whoever asks for one as the job has it must find it.
  template <typename Request>
  static Request Cleaned(Request request) {
    CleanStrings(&request);
    return request;
  }

  template <typename Message>
  static grpc::Status Answer(absl::StatusOr<Message> answer, Message* response) {
    if (!answer.ok()) {
      return {static_cast<grpc::StatusCode>(answer.status().code()),
              std::string(answer.status().message())};
    }
    response->Swap(&*answer);
    return grpc::Status::OK;
  }

  Daemon* const daemon_;
};

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      store_(options_.default_job),
      agents_(std::make_unique<AgentService>(this)),
      queries_(std::make_unique<QueryService>(this)) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Start() {
  HistoryKeeperOptions history;
  history.path = options_.history;
  history.is_optional = options_.history_is_optional;
  history.limits = options_.history_limits;
  history_ = std::make_unique<HistoryKeeper>(history);
  const absl::Status usable = history_->Start();
  if (!usable.ok()) return usable;
  ReportQueueOptions reports;
  reports.report_dir = options_.report_dir;
  reports_ = std::make_unique<ReportQueue>(reports);
  alerts_ = std::make_unique<AlertSender>(options_.alerts);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  // Two daemons must not share a port unnoticed.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A host that lost its power says no goodbye.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  if (!options_.listen.empty()) {
    builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(), &grpc_port_);
  }
  builder.RegisterService(agents_->service());
  builder.RegisterService(queries_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (!options_.listen.empty() && grpc_port_ == 0)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.listen,
                     ": the address is taken or not this machine's\n"
                     "  another one?  --listen=HOST:PORT   (port 0: any free one)"));
  }
  if (!options_.http.empty()) {
    http_ = std::make_unique<HttpServer>(this, options_.http_token, options_.http_connections);
    const absl::Status status = http_->Start(options_.http);
    if (!status.ok()) {
      http_.reset();
      Stop();
      return status;
    }
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Daemon::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.Stop();
  const SteadyTime now = std::chrono::steady_clock::now();
  if (thread_.joinable()) thread_.join();
  Deliver(now);
  stack_calls_.Close();  // whoever waits for stacks holds up the servers
  if (http_ != nullptr) http_->Stop();
  if (server_ != nullptr) {
    agents_->CloseAll();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_->Wait();
    server_.reset();
  }
}

// The last of reports, history and alerts, all at once.
void Daemon::Deliver(SteadyTime begun) {
  if (alerts_ != nullptr) alerts_->BeginFinish();
  if (reports_ != nullptr) reports_->Finish(begun + kReportsWithin);
  if (reports_ != nullptr) NoteWrittenReports();
  if (history_ != nullptr) {
    SaveHistory();
    history_->Finish(begun + kHistoryWithin);
  }
  if (alerts_ != nullptr) alerts_->Finish(begun + kAlertsWithin);
}

std::shared_ptr<grpc::ChannelInterface> Daemon::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  return server_->InProcessChannel(arguments);
}

std::string Daemon::http_address() const { return http_ == nullptr ? "" : http_->address(); }

void Daemon::Run() {
  do {
    Tick(timeline_.Now());
  } while (!stop_.SleepFor(options_.tick_ns));
  Tick(timeline_.Now());  // the last word of the agents
}

void Daemon::Tick(int64_t now_ns) {
  const int64_t begun_ns = SteadyNs();
  NoteSilence(now_ns);
  for (const std::string& name : store_.JobNames()) DiagnoseJob(name, now_ns);
  WriteReports();
  SaveHistory();
  const absl::MutexLock lock(&mutex_);
  ++counters_.ticks;
  counters_.tick_seconds += static_cast<double>(SteadyNs() - begun_ns) / 1e9;
}

void Daemon::DiagnoseJob(const std::string& name, int64_t now_ns) {
  const uint64_t version = store_.Version(name);
  if (IsOver(name, version, now_ns)) return;
  store_.NoteHeard(name, timeline_.counts_from_ns());
  store_.Read(name, [&](const JobState& state) {
    Take(state, diagnosers_[name].Run(state, now_ns, options_.limits), now_ns, version);
  });
}

void Daemon::Take(const JobState& state, std::vector<Verdict> verdicts, int64_t now_ns,
                  uint64_t version) {
  const absl::MutexLock lock(&mutex_);
  auto known = jobs_.find(state.name);
  if (known == jobs_.end()) {
    known = jobs_.try_emplace(state.name, state.name, history_->LastNumber(state.name)).first;
  }
  JobWatch& watch = known->second;
  if (watch.rate.IsDue(now_ns)) {
    watch.rate.Note(now_ns, CallsEntered(state), PublicRanks(state).count());
  }
  const auto warnings = std::stable_partition(verdicts.begin(), verdicts.end(),
                                              [](const Verdict& v) { return !IsWarning(v.cause); });
  watch.warnings.clear();
  for (auto at = warnings; at != verdicts.end(); ++at) watch.warnings.push_back(at->summary);
  verdicts.erase(warnings, verdicts.end());
  AskAtStart(state, &watch, now_ns);
  const bool hangs = watch.life.live() && watch.life.live()->state == IncidentState::kConfirmed;
  std::vector<Verdict> end;
  if (!hangs) end = JudgeTheEnd(state, &watch.fallen);
  if (!end.empty()) verdicts = std::move(end);
  for (const IncidentEvent& event : watch.life.Update(state, verdicts, now_ns, options_.limits)) {
    Act(state, event, &watch);
    if (event.kind != IncidentEvent::Kind::kEnded) continue;
    // What comes after a hang that was told is no news.
    for (const auto& [id, comm] : state.communicators) watch.fallen.insert(id);
  }
  watch.version = version;
  if (!AllEnded(state)) {
    watch.ended_ns = 0;
  } else if (watch.ended_ns == 0) {
    watch.ended_ns = now_ns;
  }
}

// A job whose processes have all ended changes no more; after a while it is
// forgotten.
bool Daemon::IsOver(const std::string& name, uint64_t version, int64_t now_ns) {
  const absl::MutexLock lock(&mutex_);
  const auto watch = jobs_.find(name);
  if (watch == jobs_.end() || watch->second.ended_ns == 0 || watch->second.life.live() ||
      watch->second.version != version) {
    return false;
  }
  if (now_ns - watch->second.ended_ns > options_.keep_ended_ns) {
    store_.Forget(name);
    diagnosers_.erase(name);
    jobs_.erase(watch);
    ++changes_;
  }
  return true;
}

void Daemon::Act(const JobState& state, const IncidentEvent& event, JobWatch* watch) {
  v1::Incident incident = ToProto(OnTheWall(event.incident));
  incident.set_rollcall_version(ROLLCALL_VERSION);
  auto at = std::find_if(
      watch->incidents.begin(), watch->incidents.end(),
      [&incident](const Record& record) { return record.incident.id() == incident.id(); });
  if (at == watch->incidents.end()) {
    if (watch->incidents.size() >= kIncidentsKept) watch->incidents.erase(watch->incidents.begin());
    at = watch->incidents.insert(watch->incidents.end(), Record());
  }
  // What this side has added stays.
  incident.mutable_stacks()->Swap(at->incident.mutable_stacks());
  incident.mutable_stack_tree()->Swap(at->incident.mutable_stack_tree());
  incident.set_report_path(at->folder);
  KeepTimes(at->incident, &incident);
  incident.set_report_note(at->incident.report_note());
  at->incident.Swap(&incident);
  AddPlaces(&at->incident);
  at->dirty = true;
  at->unsaved = true;
  ++watch->changes;
  ++changes_;
  Count(event, watch);
  Alert(event, at->incident);
  if (options_.log_incidents && event.kind == IncidentEvent::Kind::kConfirmed) {
    spdlog::info("{}: {}", event.incident.id, event.incident.verdicts.front().summary);
  }
  if (event.take_stacks_of.empty()) return;
  at->stacks_open += static_cast<int>(event.take_stacks_of.size());
  at->stacks_asked_ns = timeline_.Now();
  AskForStacks(state, event);
}

// The incident with times of the wall clock, for people.
Incident Daemon::OnTheWall(Incident incident) {
  incident.opened_ns = timeline_.WallOf(incident.opened_ns);
  incident.confirmed_ns = timeline_.WallOf(incident.confirmed_ns);
  incident.closed_ns = timeline_.WallOf(incident.closed_ns);
  return incident;
}

void Daemon::Count(const IncidentEvent& event, JobWatch* watch) {
  if (event.kind == IncidentEvent::Kind::kConfirmed) {
    ++watch->incidents_by_cause[CauseName(event.incident.verdicts.front().cause)];
  }
  const Incident& incident = event.incident;
  if (incident.closed_ns == 0 || incident.confirmed_ns == 0) return;
  watch->hung_seconds[CauseName(incident.verdicts.front().cause)] +=
      static_cast<double>(incident.closed_ns - incident.opened_ns) / 1e9;
}

void Daemon::Alert(const IncidentEvent& event, const v1::Incident& incident) {
  if (!incident.has_confirmed_at()) return;
  if (event.kind == IncidentEvent::Kind::kConfirmed) alerts_->Send(incident, false);
  if (event.kind == IncidentEvent::Kind::kResolved || event.kind == IncidentEvent::Kind::kEnded) {
    alerts_->Send(incident, true);
  }
}

// The first report waits a little for the first stacks: whoever ends the job because of it takes
// them with it. Not once we stop: no more will come.
bool Daemon::AwaitsStacks(const Record& record) const {
  return !stopping_ && record.folder.empty() && record.stacks_open > 0 &&
         timeline_.Now() - record.stacks_asked_ns < kStacksBeforeReportNs;
}

void Daemon::OnTick(const AgentName& agent, const v1::Tick& tick) {
  if (!store_.Apply(agent, tick, timeline_.Now())) agents_->Restart(agent.id);
  if (tick.dropped_ticks() == 0) return;  // as nearly always
  const absl::MutexLock lock(&mutex_);
  uint64_t& known = dropped_ticks_[agent.host];
  // An agent that was started anew counts from 0.
  counters_.dropped_agent_ticks +=
      tick.dropped_ticks() - (tick.dropped_ticks() >= known ? known : 0);
  known = tick.dropped_ticks();
}

void Daemon::OnConnected(const AgentName& agent) {
  spdlog::debug("agent of {} connected", agent.host);
  store_.Connected(agent);
}

void Daemon::OnGone(const AgentName& agent) {
  spdlog::debug("agent of {} is gone", agent.host);
  for (const std::string& refused : store_.Gone(agent)) agents_->Restart(refused);
}

void Daemon::NoteSilence(int64_t now_ns) {
  for (const std::string& host : store_.NoteTime(now_ns, options_.silent_after_ns)) {
    spdlog::warn("the agent of {} has been silent for {} s", host,
                 options_.silent_after_ns / kSecond);
  }
}

}  // namespace rollcall
