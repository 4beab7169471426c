// SPDX-License-Identifier: Apache-2.0
// The daemon: takes in what agents tell, diagnoses, keeps incidents, writes reports, answers
// questions. This class only wires the parts that do so, and starts and stops them:
//
//   agent_service    agents' streams            ->  job_store       what is known of all jobs
//   job_diagnosis    looks at each job          ->  incident_book   incidents, reports, alerts
//   stack_desk       asks agents for stacks
//   queries          answers people             <-  query_service (gRPC), http
//
// Runs inside rollcalld, and inside `rollcall run`. Whoever owns it starts and stops it from one
// thread; the rest may be called from any. Owns the thread that diagnoses a few times a second. The
// parts own gRPC's threads, those of the HTTP server, and one each for reports, for the history and
// for every receiver of alerts: whatever waits for a disk or the network waits there.
//
// Locks: none here. Where a thread holds two, it has taken them in this order: a job's in
// job_store, the incident book's, one of a part that calls nobody (report queue, history, alerts,
// call rates, timeline). None is held when an agent is asked for stacks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "daemon/model/job_state.h"
#include "daemon/server/agent_service.h"
#include "daemon/server/alerts.h"
#include "daemon/server/call_rate.h"
#include "daemon/server/daemon_counters.h"
#include "daemon/server/grpc_server.h"
#include "daemon/server/history_keeper.h"
#include "daemon/server/incident_book.h"
#include "daemon/server/job_diagnosis.h"
#include "daemon/server/job_store.h"
#include "daemon/server/queries.h"
#include "daemon/server/query_service.h"
#include "daemon/server/stack_desk.h"
#include "daemon/server/stop_signal.h"
#include "daemon/server/timeline.h"

namespace grpc {
class ChannelInterface;
}

namespace rollcall {

class HttpServer;

struct DaemonOptions {
  Limits limits;
  std::string report_dir;            // "" for no reports on disk
  std::string listen;                // HOST:PORT for agents and queries; "" for in-process only
  std::string http;                  // HOST:PORT, port 0 for any; "" for none
  std::string http_token;            // that whoever asks by HTTP must show; "" for none
  int http_connections = 256;        // at once; they must not use up the file descriptors
  std::string history;               // file of all incidents; "" keeps them in memory
  bool history_is_optional = false;  // start without, where the file cannot be used, and try again
  HistoryLimits history_limits;
  AlertOptions alerts;
  std::string default_job = "default";
  bool log_incidents = true;  // `rollcall run` tells of them itself
  int64_t tick_ns = 100'000'000;
  int64_t silent_after_ns = 10'000'000'000;  // an agent that is gone for so long is silent
  int64_t keep_ended_ns = 3600'000'000'000;  // ended jobs are forgotten after that
};

// How long a daemon may take to stop.
inline constexpr std::chrono::seconds kStopWithin{15};

// Limits that follow from --hang-after: the first look comes early enough for
// two samples of stacks, a second or more apart, before the limit.
Limits LimitsFor(int64_t hang_after_ns);

class Daemon : public AgentSink {
 public:
  explicit Daemon(DaemonOptions options);
  ~Daemon() override;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // kUnavailable when an address cannot be used: says which, why, and what to
  // type.
  absl::Status Start();
  // Returns within kStopWithin, whatever hangs. By then all reports are written that could be, and
  // what could not be delivered is logged.
  void Stop();

  // A channel to this daemon within the process.
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel() { return server_.InProcessChannel(); }
  int grpc_port() const { return server_.port(); }  // 0: none
  std::string http_address() const;                 // "127.0.0.1:34567"; "" for none

  // Of this daemon's jobs, or one of them, oldest first.
  std::vector<v1::Incident> GetIncidents(const std::string& job) const;
  const QuerySource& queries() const { return queries_; }

  void OnTick(const AgentName& agent, const v1::Tick& tick) override;
  void OnStack(const AgentName& agent, const v1::StackReply& reply) override;
  void OnConnected(const AgentName& agent) override;
  void OnGone(const AgentName& agent) override;

 private:
  void Run();
  void Tick(int64_t now_ns);
  absl::Status StartHttp();
  void LogSilentAgents(int64_t now_ns);

  const DaemonOptions options_;
  Timeline timeline_;
  DaemonCounters counters_;
  CallRates rates_;
  JobStore store_;
  AgentService agents_;
  IncidentBook incidents_;
  StackDesk stacks_;
  JobDiagnosis diagnosis_;
  Queries queries_;
  QueryService query_service_;
  GrpcServer server_;
  std::unique_ptr<HttpServer> http_;
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace rollcall
