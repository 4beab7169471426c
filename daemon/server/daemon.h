// The daemon: takes in what agents tell, diagnoses, keeps incidents, writes
// reports, answers questions.
//
// Runs inside rollcalld, and inside `rollcall run`. Owns its threads: one that
// diagnoses a few times a second, gRPC's, those of the HTTP server, and one each
// for reports, for the history and for every receiver of alerts. Whatever waits
// for a disk or the network waits there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/incidents.h"
#include "daemon/report/stacks/stack_tree.h"
#include "daemon/server/agent_service.h"
#include "daemon/server/alerts.h"
#include "daemon/server/call_rate.h"
#include "daemon/server/history_keeper.h"
#include "daemon/server/job_store.h"
#include "daemon/server/report_queue.h"
#include "daemon/server/stack_calls.h"
#include "daemon/server/start_watch.h"
#include "daemon/server/stop_signal.h"
#include "daemon/server/timeline.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace grpc {
class ChannelInterface;
class Server;
}  // namespace grpc

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
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel();
  int grpc_port() const { return grpc_port_; }  // 0: none
  std::string http_address() const;             // "127.0.0.1:34567"; "" for none

  v1::StatusResponse GetStatus(const std::string& job, bool with_communicators = true) const;
  // Of this daemon's jobs, oldest first.
  std::vector<v1::Incident> GetIncidents(const std::string& job) const;
  // kNotFound where there is no such job or incident; says what there is.
  absl::StatusOr<v1::JobView> GetJob(const std::string& job) const;
  absl::StatusOr<v1::CallsResponse> GetCalls(const v1::CallsRequest& request) const;
  absl::StatusOr<v1::ProcessesResponse> ListProcesses(const v1::ProcessesRequest& request) const;
  absl::StatusOr<v1::ListIncidentsResponse> ListIncidents(
      const v1::ListIncidentsRequest& request) const;
  absl::StatusOr<v1::Incident> GetIncident(const std::string& id) const;
  // Take() for people: waits for all of them, and merges.
  absl::StatusOr<v1::StacksResponse> GetStacks(const v1::TakeStacksRequest& request);
  // Changes when what the others return does, times apart. "": of all jobs.
  uint64_t Version(const std::string& job) const;
  // In the text format of Prometheus, or OpenMetrics.
  std::string GetMetrics(bool open_metrics) const;

  // Takes the stacks of these processes of the job, now; `on_stack` is called with each as it
  // comes, and stops it by returning false. Errors: kNotFound, which says what there is.
  absl::Status TakeStacks(const v1::TakeStacksRequest& request,
                          const std::function<bool(const v1::ProcessStack&)>& on_stack);

  void OnTick(const AgentName& agent, const v1::Tick& tick) override;
  void OnStack(const AgentName& agent, const v1::StackReply& reply) override;
  void OnConnected(const AgentName& agent) override;
  void OnGone(const AgentName& agent) override;

 private:
  class QueryService;
  struct Record {  // an incident as people see it
    v1::Incident incident;
    std::string folder;           // of its report; "" while there is none
    bool dirty = false;           // the report is older than the incident
    bool unsaved = false;         // so is the history
    int stacks_open = 0;          // asked for and not yet there
    int64_t stacks_asked_ns = 0;  // when the newest of them were
    StackTree rest;               // of processes whose stacks are merged at once, not kept
  };
  struct JobWatch {
    JobWatch(const std::string& job, int incidents_before) : life(job, incidents_before) {}
    IncidentLife life;
    std::set<uint64_t> fallen;  // communicators whose end was judged
    StartWatch start;
    std::vector<std::string> warnings;  // sentences; nothing hangs
    std::vector<Record> incidents;
    int64_t ended_ns = 0;  // when all its processes had; 0: they have not
    uint64_t version = 0;  // of the state that was diagnosed last
    uint64_t changes = 0;  // of its incidents
    CallRate rate;
    std::map<std::string, int> incidents_by_cause;
    std::map<std::string, double> hung_seconds;  // of confirmed incidents that are closed, by cause
  };
  struct Counters {  // since the daemon's start
    uint64_t ticks = 0;
    double tick_seconds = 0;
    uint64_t dropped_agent_ticks = 0;
  };
  // A process whose stacks were asked for.
  struct Asked {
    int32_t process = -1;  // index in the job's state
    int32_t rank = -1;
    bool culprit = false;
    std::string agent;  // that was asked, by its id
  };
  struct StackRequest {
    std::string job;
    std::string incident;
    bool rest = false;                                       // to be merged only
    std::map<std::pair<std::string, int32_t>, Asked> asked;  // by host and pid
  };

  void Run();
  void Tick(int64_t now_ns);
  void DiagnoseJob(const std::string& name, int64_t now_ns);
  void Take(const JobState& state, std::vector<Verdict> verdicts, int64_t now_ns, uint64_t version)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsOver(const std::string& name, uint64_t version, int64_t now_ns);
  void Act(const JobState& state, const IncidentEvent& event, JobWatch* watch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Count(const IncidentEvent& event, JobWatch* watch);
  void Alert(const IncidentEvent& event, const v1::Incident& incident);
  void AskForStacks(const JobState& state, const IncidentEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskAtStart(const JobState& state, JobWatch* watch, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitsStacks(const Record& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static v1::StackTree MergedStacks(const v1::Incident& incident, const StackTree& rest);
  void WriteReports() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteWrittenReports() ABSL_LOCKS_EXCLUDED(mutex_);
  void SaveHistory() ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver(SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::Incident> InMemory(bool open_only, bool with_stacks) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  static v1::Incident AsOfNow(const JobWatch& watch, const v1::Incident& incident);
  void AddWhatIncidentsTell(v1::JobStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Jobs() const;
  void NoteSilence(int64_t now_ns);
  Incident OnTheWall(Incident incident);

  const DaemonOptions options_;
  JobStore store_;
  std::unique_ptr<HistoryKeeper> history_;
  std::unique_ptr<ReportQueue> reports_;
  std::unique_ptr<AlertSender> alerts_;
  std::unique_ptr<AgentService> agents_;
  std::unique_ptr<QueryService> queries_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HttpServer> http_;
  int grpc_port_ = 0;

  mutable Timeline timeline_;
  StopSignal stop_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JobWatch> jobs_ ABSL_GUARDED_BY(mutex_);
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // of incidents, and jobs that were forgotten
  StackCalls stack_calls_;
  std::map<uint64_t, StackRequest> stack_requests_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_request_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, uint64_t> dropped_ticks_ ABSL_GUARDED_BY(mutex_);  // host -> as told
  std::map<std::string, Diagnoser> diagnosers_;  // by job; the diagnosing thread's own
  std::thread thread_;
};

}  // namespace rollcall
