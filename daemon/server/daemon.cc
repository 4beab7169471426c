// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/daemon.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/server/http.h"
#include "proto/durations.h"
#include "proto/steady_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

IncidentBookOptions BookOptions(const DaemonOptions& options) {
  IncidentBookOptions book;
  book.limits = options.limits;
  book.report_dir = options.report_dir;
  book.history.path = options.history;
  book.history.is_optional = options.history_is_optional;
  book.history.limits = options.history_limits;
  book.alerts = options.alerts;
  book.log_incidents = options.log_incidents;
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
      store_(options_.default_job),
      agents_(this),
      incidents_(BookOptions(options_), &timeline_),
      stacks_([this](const std::string& agent, const v1::DaemonMessage& message) {
                return agents_.Send(agent, message);
              },
              &store_, &incidents_, &timeline_),
      diagnosis_({&store_, &incidents_, &stacks_, &rates_, &timeline_}, options_.limits,
                 options_.keep_ended_ns),
      queries_({&store_, &incidents_, &stacks_, &agents_, &rates_, &counters_, &timeline_}),
      query_service_(&queries_) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Start() {
  absl::Status status = incidents_.Start();
  if (status.ok()) {
    status = server_.Start(options_.listen, {agents_.service(), query_service_.service()});
  }
  if (!status.ok()) return status;
  status = StartHttp();
  if (!status.ok()) {
    Stop();
    return status;
  }
  thread_ = std::thread([this] { Run(); });
  return status;
}

absl::Status Daemon::StartHttp() {
  if (options_.http.empty()) return absl::OkStatus();
  http_ = std::make_unique<HttpServer>(&queries_, options_.http_token, options_.http_connections);
  absl::Status status = http_->Start(options_.http);
  if (!status.ok()) http_.reset();
  return status;
}

void Daemon::Stop() {
  incidents_.BeginStop();
  stop_.Stop();
  const SteadyTime begun = std::chrono::steady_clock::now();
  if (thread_.joinable()) thread_.join();
  incidents_.Finish(begun);
  stacks_.Close();  // whoever waits for stacks holds up the servers
  if (http_ != nullptr) http_->Stop();
  agents_.CloseAll();
  server_.Stop();
}

std::string Daemon::http_address() const { return http_ == nullptr ? "" : http_->address(); }

std::vector<v1::Incident> Daemon::GetIncidents(const std::string& job) const {
  return incidents_.All(job);
}

void Daemon::Run() {
  do {
    Tick(timeline_.Now());
  } while (!stop_.SleepFor(options_.tick_ns));
  Tick(timeline_.Now());  // the last word of the agents
}

void Daemon::Tick(int64_t now_ns) {
  const int64_t begun_ns = SteadyNs();
  LogSilentAgents(now_ns);
  diagnosis_.LookAtAll(now_ns);
  incidents_.Publish();
  counters_.AddTick(static_cast<double>(SteadyNs() - begun_ns) / 1e9);
}

void Daemon::LogSilentAgents(int64_t now_ns) {
  for (const std::string& host : store_.MarkSilentAgents(now_ns, options_.silent_after_ns)) {
    spdlog::warn("the agent of {} has been silent for {} s", host,
                 options_.silent_after_ns / kSecond);
  }
}

void Daemon::OnTick(const AgentName& agent, const v1::Tick& tick) {
  if (!store_.Apply(agent, tick, timeline_.Now())) agents_.Restart(agent.id);
  counters_.SetDropped(agent.host, tick.dropped_ticks());
}

void Daemon::OnStack(const AgentName& agent, const v1::StackReply& reply) {
  stacks_.OnStack(agent, reply);
}

void Daemon::OnConnected(const AgentName& agent) {
  spdlog::debug("agent of {} connected", agent.host);
  store_.Connected(agent);
}

void Daemon::OnGone(const AgentName& agent) {
  spdlog::debug("agent of {} is gone", agent.host);
  for (const std::string& refused : store_.Gone(agent)) agents_.Restart(refused);
}

}  // namespace rollcall
