// SPDX-License-Identifier: Apache-2.0
// Reports each confirmed incident once to `rollcall run`, as the few lines that it prints
// on stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/report_wait.h"
#include "cli/run/hang_policy.h"
#include "daemon/model/job_key.h"
#include "daemon/words/rank_ranges.h"
#include "rollcall/v1/incident.pb.h"

namespace grpc {
class ChannelInterface;
}

namespace rollcall {

class Daemon;

// A confirmed incident, with the facts on which --on-hang decides.
struct ConfirmedIncident {
  std::string id;
  JobKey job;
  std::string summary;
  std::string report_path;  // "" if no report is on disk
  bool is_over = false;     // the incident had ended when Look() found it
  bool has_failed = false;  // a rank has ended: the launcher may end the others
  int64_t waited_ns = 0;
  Finding finding;
  RankRanges ranks;           // all culprits and all waiting ranks, global
  uint64_t communicator = 0;  // id
  // The incident's job has a communicator of this run. Another job may have the same name.
  bool shares_communicator = false;
};

class IncidentWatch {
 public:
  struct News {
    ConfirmedIncident incident;
    std::string text;  // for stderr, whole lines
  };

  // Watches the embedded daemon. `reports`: the daemon writes reports. If it has no folder for
  // them, News::text holds the whole report.
  static std::unique_ptr<IncidentWatch> OfDaemon(const Daemon* daemon, std::string job,
                                                 bool reports);
  // Watches a daemon on the network. The daemon may have several jobs and attempts with the name
  // `job`: the watch follows those of this run, whose segments are in `directory`. `host` is the
  // name under which an agent reports this host. A thread of the watch also writes the reports to
  // `report_dir` here. `connect` makes a new channel to it, at first and when the last one has
  // failed.
  using Connect = std::function<std::shared_ptr<grpc::ChannelInterface>()>;
  static std::unique_ptr<IncidentWatch> OfDaemonAt(std::string address, Connect connect,
                                                   std::string job, const std::string& directory,
                                                   const std::string& host,
                                                   const std::string& report_dir);
  virtual ~IncidentWatch() = default;

  // Returns the incidents confirmed since the last call. Holds an incident back until its report is
  // complete, or for a few seconds. `last`: holds nothing back, but waits some seconds for reports
  // that this process is writing.
  std::vector<News> Look(bool last = false);

  // Returns a line for stderr about an incident that Look() holds back while its stacks are taken,
  // once for each incident that it holds back for a second; else "".
  std::string ConsumeProgress() { return std::exchange(progress_, ""); }

  // The incidents that Look() has returned and that were not over at its last answer, in their
  // state of that time.
  const std::vector<ConfirmedIncident>& open() const { return open_; }

 protected:
  explicit IncidentWatch(bool reports) : reports_(reports) {}
  // Returns nullopt if there is no answer at this moment. `last`: this is the last call.
  virtual std::optional<std::vector<v1::Incident>> Fetch(bool last) = 0;
  virtual bool SharesCommunicator(const JobKey& job) = 0;

 private:
  // Whether Look() should return the incident now.
  bool IsDue(const v1::Incident& incident);

  const bool reports_;
  std::set<std::string> reported_;  // ids of incidents
  ReportWait waits_for_report_;
  std::string progress_;
  std::vector<ConfirmedIncident> open_;
  int64_t answered_ns_ = 0;  // the time of the last answer from Fetch(), monotonic
};

// Returns the lines for stderr: what happened, what to do, where the report is.
std::string IncidentLines(const v1::Incident& incident);

}  // namespace rollcall
