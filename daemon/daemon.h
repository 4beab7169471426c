// SPDX-License-Identifier: Apache-2.0
// The daemon: receives the agents' messages, diagnoses jobs, keeps incidents, writes reports,
// answers queries. This class only connects its parts, and starts and stops them:
//
//   agent_service    streams of agents          ->  agent_hub       what their messages do
//                                               ->  job_runners     a mailbox for each job
//   job_runner       applies ticks, diagnoses   ->  job_store       the states of all jobs
//                                               ->  incident_book   incidents, reports, alerts
//   answers          answers people, by gRPC and http
//   fleet            this daemon among several  ->  held_jobs       takes jobs over, drops them
//   audit_log        what operators did
//   daemon_clock     what is due by the clock
//
// Runs inside rollcalld, and inside `rollcall run`. The owner starts and stops it from one thread;
// any thread may call the rest. The parts own the thread that looks for silent agents and sets
// their pace, the workers that run jobs, gRPC's threads, those of the HTTP server, one for reports,
// two for the history and one for every receiver of alerts: only these wait for a disk or the
// network.
//
// Locks: none here. A thread that takes two mutexes takes them in this order: a job's in job_store,
// IncidentStore's, one of a part that calls no other part (report queue, history, alerts, call
// rates, timeline). No thread holds one while it sends a stack request. That of host_hangs_desk is
// held while it sends.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/access/access.h"
#include "daemon/agent_hub.h"
#include "daemon/agents/agent_service.h"
#include "daemon/alerts/alerts.h"
#include "daemon/audit_log.h"
#include "daemon/daemon_clock.h"
#include "daemon/fleet/fleet.h"
#include "daemon/held_jobs.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/call_rate.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/loop/job_pairs.h"
#include "daemon/loop/job_runners.h"
#include "daemon/model/job_state.h"
#include "daemon/queries/fleet_queries.h"
#include "daemon/queries/past_views.h"
#include "daemon/queries/past_views_keeper.h"
#include "daemon/queries/queries.h"
#include "daemon/queries/query_service.h"
#include "net/grpc_server.h"

namespace grpc {
class ChannelInterface;
class ServerCredentials;
}  // namespace grpc

namespace rollcall {

class DaemonSecurity;
class HttpServer;
class GpuDumpSource;
class RecorderSource;

struct DaemonOptions {
  Limits limits;
  std::string report_dir;     // folder of reports; "" for no reports on disk
  ReportLimits keep_reports;  // the daemon deletes older ones; by default it deletes none
  JobStoreLimits job_limits;
  StreamLimits stream_limits;
  std::string listen;      // HOST:PORT for agents and queries; "" for in-process only
  std::string http;        // HOST:PORT, port 0 for any; empty for no page
  std::string http_token;  // token that every HTTP request must carry; empty if not needed
  // Callers that the authenticator accepts need no `http_token`.
  bool http_token_is_optional = false;
  // Limit of simultaneous connections, so that descriptors remain for other uses.
  int http_connections = 256;
  std::string history;               // database file of all incidents; "" keeps them in memory
  bool history_is_optional = false;  // start without the history if its file is unusable, and retry
  HistoryLimits history_limits;
  PostgresOptions database;  // the history of several daemons; `history` is its spool then
  // HOST:PORT by which agents and the other daemons of `database` reach this one; empty means
  // `listen`, or this host's name.
  std::string advertise;
  AlertOptions alerts;
  // Decides who callers are; must outlive the daemon. nullptr means every caller is the owner.
  const Authenticator* authenticator = nullptr;
  // Certificates, and the files that the daemon reads again; must outlive it. nullptr if there is
  // none.
  DaemonSecurity* security = nullptr;
  std::string http_config;              // path of a web.yml, or empty
  std::vector<std::string> http_hosts;  // further names that lead to the page
  IncidentQuotaLimits incident_quota;
  int64_t remind_every_ns = 0;  // IncidentBookOptions::remind_every_ns
  HostLabels host_labels;
  std::string default_job = "default";
  // Asks the Flight Recorders of jobs that stand still; must outlive the daemon. nullptr if there
  // is none.
  RecorderSource* recorders = nullptr;
  // Asks for core dumps of the GPUs of confirmed hangs; must outlive the daemon. nullptr if there
  // is none.
  GpuDumpSource* gpu_dumps = nullptr;
  bool log_incidents = true;  // `rollcall run` prints incidents itself
  int64_t tick_ns = 100'000'000;
  int64_t silent_after_ns = 10'000'000'000;  // an agent is silent after this time without a tick
  int64_t keep_ended_ns = 3600'000'000'000;  // the daemon forgets an ended job after this time
  // An agent whose certificate or token is revoked loses its stream within this time.
  int64_t check_callers_every_ns = 10'000'000'000;
};

// The longest time that Stop() may take.
inline constexpr std::chrono::seconds kStopWithin{15};

// Limits that follow from --hang-after. The first check comes early enough for two samples of
// stacks, a second or more apart, before the limit.
Limits LimitsFor(int64_t hang_after_ns);

class Daemon {
 public:
  explicit Daemon(DaemonOptions options);
  ~Daemon();

  // Returns kUnavailable if an address is unusable. The error names which, why, and what to type.
  absl::Status Start();
  // Returns within kStopWithin, even if a disk or receiver hangs. By then it has written all
  // reports that it can, and logged what it could not deliver.
  void Stop();

  // Returns a channel to this daemon inside the process.
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel() { return server_.InProcessChannel(); }
  int grpc_port() const { return server_.port(); }  // 0 if there is none
  std::string page_url() const;                     // "https://127.0.0.1:34567/"
  std::string http_address() const;                 // "127.0.0.1:34567"; empty without a page

  // Whether the daemon's own thread and its workers have done something of late.
  bool IsAlive() const { return clock_.IsAlive(); }
  int64_t agents() const { return agents_.agents(); }
  AgentSink* agent_sink() { return &hub_; }
  IncidentBook* incidents() { return &incidents_; }
  // Returns incidents of one job, or of all jobs for "", oldest first.
  std::vector<v1::Incident> GetIncidents(const std::string& job) const;
  // What the GPU of a rank did; thread-safe.
  void AddGpuDump(const JobKey& job, const std::string& incident, const v1::GpuDump& dump) {
    incidents_.AddGpuDump(job, incident, dump);
  }
  // Answers for all daemons on the same database.
  const QuerySource& queries() const { return *answers_.all; }

 private:
  // Who may call, and whom the daemon refused.
  struct Callers {
    explicit Callers(const Authenticator* authenticator)
        : access(authenticator, &refusals, &failed_logins) {}
    Refusals refusals;
    FailedLogins failed_logins;
    Access access;
  };

  // What people get: the answers of this daemon, of all on its database, and about the past.
  struct Answers {
    explicit Answers(Daemon* daemon);
    PastViews past;
    Queries own;
    const std::unique_ptr<FleetQueries> of_fleet;  // nullptr without a fleet
    QuerySource* const all;
    PastViewsKeeper past_keeper;
    QueryService service;
  };

  absl::Status StartHttp();
  std::string Address() const;

  const DaemonOptions options_;
  Timeline timeline_;
  DaemonCounters counters_;
  const std::unique_ptr<Fleet> fleet_;  // nullptr if this daemon shares its database with no other
  CallRates rates_;
  JobStore store_;
  Callers callers_;
  AgentService agents_;
  IncidentBook incidents_;
  AuditLog audit_;
  AgentHub hub_;
  JobPairs pairs_;
  JobRunners runners_;
  Answers answers_;
  HeldJobs held_jobs_;
  DaemonClock clock_;
  GrpcServer server_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace rollcall
