// SPDX-License-Identifier: Apache-2.0
// The daemon: receives the agents' messages, diagnoses jobs, keeps incidents, writes reports,
// answers queries. This class only connects its parts, and starts and stops them:
//
//   agent_service    streams of agents          ->  job_runners     a mailbox for each job
//   job_runner       applies ticks, diagnoses   ->  job_store       the states of all jobs
//                                               ->  incident_book   incidents, reports, alerts
//   stack_desk       sends stack requests to agents
//   unrecorded_book  the jobs that run without the library, as agents list them
//   look_desk        looks at such a job when somebody asks
//   host_facts_desk  asks agents for facts about their hosts
//   host_hangs_desk  tells agents what their hosts are blamed for
//   queries          answers people             <-  query_service (gRPC), http
//
// Runs inside rollcalld, and inside `rollcall run`. The owner starts and stops it from one thread;
// any thread may call the rest. Owns the thread that looks for silent agents and sets their pace.
// The parts own the workers that run jobs, gRPC's threads, those of the HTTP server, one for
// reports, two for the history and one for every receiver of alerts: only these wait for a disk or
// the network.
//
// Locks: none here. A thread that takes two mutexes takes them in this order: a job's in job_store,
// the incident book's, one of a part that calls no other part (report queue, history, alerts, call
// rates, timeline). No thread holds one while it sends a stack request. That of host_hangs_desk is
// held while it sends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "base/stop_signal.h"
#include "daemon/access/access.h"
#include "daemon/access/refused_actions.h"
#include "daemon/access/unknown_calls.h"
#include "daemon/agents/agent_service.h"
#include "daemon/alerts/alerts.h"
#include "daemon/fleet/fleet.h"
#include "daemon/history/history_keeper.h"
#include "daemon/incidents/host_hangs_desk.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/call_rate.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/first_ticks.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/own_lateness.h"
#include "daemon/jobs/tick_pace.h"
#include "daemon/jobs/timeline.h"
#include "daemon/looks/look_desk.h"
#include "daemon/looks/unrecorded_book.h"
#include "daemon/loop/host_facts_desk.h"
#include "daemon/loop/job_pairs.h"
#include "daemon/loop/job_runners.h"
#include "daemon/loop/stack_desk.h"
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
class RecorderSource;

struct DaemonOptions {
  Limits limits;
  std::string report_dir;     // folder of reports; "" for no reports on disk
  ReportLimits keep_reports;  // the daemon deletes older ones; by default it deletes none
  JobStoreLimits job_limits;
  StreamLimits stream_limits;
  std::string listen;      // HOST:PORT for agents and queries; "" for in-process only
  std::string http;        // HOST:PORT, port 0 for any; "" for none
  std::string http_token;  // token that every HTTP request must carry; "" for none
  // Callers whom the authenticator knows need no `http_token`.
  bool http_token_is_optional = false;
  // Limit of simultaneous connections, so that descriptors remain for other uses.
  int http_connections = 256;
  std::string history;               // database file of all incidents; "" keeps them in memory
  bool history_is_optional = false;  // start without the history if its file is unusable, and retry
  HistoryLimits history_limits;
  PostgresOptions database;  // the history of several daemons; `history` is its spool then
  // HOST:PORT by which agents and the other daemons of `database` reach this one; "": `listen`, or
  // this host's name.
  std::string advertise;
  AlertOptions alerts;
  // Decides who callers are; must outlive the daemon. nullptr: every caller is the owner.
  const Authenticator* authenticator = nullptr;
  // Certificates, and the files that the daemon reads again; must outlive it. nullptr: none.
  DaemonSecurity* security = nullptr;
  std::string http_config;              // path of a web.yml; "": none
  std::vector<std::string> http_hosts;  // further names that lead to the page
  IncidentQuotaLimits incident_quota;
  int64_t remind_every_ns = 0;  // IncidentBookOptions::remind_every_ns
  HostLabels host_labels;
  std::string default_job = "default";
  // Asks the Flight Recorders of jobs that stand still; must outlive the daemon. nullptr: none.
  RecorderSource* recorders = nullptr;
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

class Daemon : public AgentSink {
 public:
  explicit Daemon(DaemonOptions options);
  ~Daemon() override;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Returns kUnavailable if an address is unusable. The error says which, why, and what to type.
  absl::Status Start();
  // Returns within kStopWithin, even if a disk or receiver hangs. By then it has written all
  // reports that it can, and logged what it could not deliver.
  void Stop();

  // A channel to this daemon inside the process.
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel() { return server_.InProcessChannel(); }
  int grpc_port() const { return server_.port(); }  // 0: none
  std::string page_url() const;                     // "https://127.0.0.1:34567/"
  std::string http_address() const;                 // "127.0.0.1:34567"; "" for none

  // Whether the daemon's own thread and its workers have done something of late.
  bool IsAlive() const;
  int64_t agents() const { return agents_.agents(); }
  void SetQuota(const IncidentQuotaLimits& limits) { incidents_.SetQuota(limits); }
  void SetHostLabels(HostLabels labels) { incidents_.SetHostLabels(std::move(labels)); }

  // Incidents of one job, or of all jobs for "", oldest first.
  std::vector<v1::Incident> GetIncidents(const std::string& job) const;
  // Of all daemons on the same database.
  const QuerySource& queries() const { return *all_queries(); }

  void OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
              std::function<void()> applied) override;
  void OnStackReply(const AgentName& agent, const v1::StackReply& reply) override;
  void OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) override;
  void OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) override;
  void OnConnected(const AgentName& agent) override;
  void OnDisconnected(const AgentName& agent) override;

 private:
  void Run();
  void Tick();
  bool HasTls() const;
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;
  absl::Status StartHttp();
  void Publish();
  void TellHostHangs();
  void Audit(const AuditEntry& event);
  void AuditRefusal(const AuditEntry& event);
  void MarkSilentAgents(int64_t now_ns);
  void UpdatePace(int64_t now_ns);
  void SendPace(const AgentName& agent, const AgentBook::Origin& origin);
  void CountLeftOut(const AgentBook::Origin& origin, const v1::Tick& tick);
  void EndTurn(const std::string& agent) ABSL_LOCKS_EXCLUDED(turns_mutex_);
  void BeginTurns() ABSL_LOCKS_EXCLUDED(turns_mutex_);
  const QuerySource* all_queries() const;
  QuerySource* all_queries();
  void LeaveOutIdle(std::vector<std::string>* hosts) const;
  std::string Address() const;
  void StartFleet();
  void SeekOwners(const AgentName& agent, const RoutedTick& routed);
  void TellOwner(const Fleet::Report& report, const std::string& owner);
  void Adopt(const JobId& job, Continuation from_earlier);
  void Release(const JobId& job, const std::vector<std::string>& agents);
  void KeepSilences();
  bool Welcome(const std::string& agent);

  const DaemonOptions options_;
  Timeline timeline_;
  DaemonCounters counters_;
  const std::unique_ptr<Fleet> fleet_;  // nullptr: this daemon shares its database with no other
  CallRates rates_;
  JobStore store_;
  Refusals refusals_;
  FailedLogins failed_logins_;
  Access access_;
  RefusedActions refused_actions_;
  AgentService agents_;
  IncidentBook incidents_;
  StackDesk stacks_;
  UnrecordedBook unrecorded_;
  LookDesk looks_;
  HostFactsDesk host_facts_;
  HostHangsDesk host_hangs_;
  JobPairs pairs_;
  JobRunners runners_;
  PastViews past_views_;
  Queries queries_;
  const std::unique_ptr<FleetQueries> fleet_queries_;  // nullptr: without a fleet
  PastViewsKeeper past_views_keeper_;
  QueryService query_service_;
  UnknownCalls unknown_calls_;
  GrpcServer server_;
  std::unique_ptr<HttpServer> http_;
  StopSignal stop_;
  Mutex turns_mutex_;  // taken last
  FirstTicks turns_ ABSL_GUARDED_BY(turns_mutex_);
  // Of the thread below, except the atomic ones.
  OwnLateness lateness_;
  TickPace pace_;
  int64_t pace_updated_ns_ = 0, callers_checked_ns_ = 0;
  int64_t told_hangs_ns_ = 0;                            // when host_hangs_ was updated
  double cpu_seconds_ = 0;                               // when the pace was updated
  std::atomic<int64_t> tick_ns_{TickPace::kShortestNs};  // the pace
  std::atomic<int64_t> ran_ns_{SteadyNs()};              // when the thread did something last
  std::atomic<uint64_t> ticks_{0};                       // applied since the pace was updated
  std::thread thread_;
  std::thread views_thread_;     // of past_views_keeper_
  std::thread silences_thread_;  // takes over the silences of other daemons
};

}  // namespace rollcall
