// SPDX-License-Identifier: Apache-2.0
// Reports each confirmed incident once to `rollcall run`, as the few lines that it prints
// on stderr.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/hang_policy.h"
#include "rollcall/v1/incident.pb.h"

namespace grpc {
class ChannelInterface;
}

namespace rollcall {

class Daemon;

// An incident that has been confirmed, and what counts for acting on it.
struct ConfirmedIncident {
  std::string id;
  std::string summary;
  std::string report_path;  // "" where there is no report on disk
  bool is_over = false;     // it had ended by itself when it was found
  bool has_failed = false;  // a rank has ended: its launcher may see to the others
  int64_t waited_ns = 0;
  Finding finding;
  std::set<int32_t> ranks;    // global ones, of culprits and waiting
  uint64_t communicator = 0;  // id
};

class IncidentWatch {
 public:
  struct News {
    ConfirmedIncident incident;
    std::string text;  // for stderr, whole lines
  };

  // Of the embedded daemon, which writes the reports itself (`reports`), or is
  // without a folder for them: then the text holds the whole report.
  static std::unique_ptr<IncidentWatch> OfDaemon(const Daemon* daemon, std::string job,
                                                 bool reports);
  // Of a daemon elsewhere. Reports are written here too, to `report_dir`, by a thread of their own.
  static std::unique_ptr<IncidentWatch> OfDaemonAt(std::string address,
                                                   std::shared_ptr<grpc::ChannelInterface> channel,
                                                   std::string job,
                                                   const std::string& report_dir);
  virtual ~IncidentWatch() = default;

  // Those confirmed since the last call: when their report is complete, or could not be written in
  // a few seconds. `last`: nobody waits any longer, but some seconds for reports that are being
  // written here.
  std::vector<News> Look(bool last = false);

  // Those told that were not over when Look() last got an answer, as they stood then.
  const std::vector<ConfirmedIncident>& open() const { return open_; }

 protected:
  explicit IncidentWatch(bool reports) : reports_(reports) {}
  // Nothing where nobody can say just now. `last`: it is not called again.
  virtual std::optional<std::vector<v1::Incident>> Fetch(bool last) = 0;

 private:
  // Whether people should be told now.
  bool IsDue(const v1::Incident& incident);

  const bool reports_;
  std::set<std::string> told_;                        // incidents' ids
  std::map<std::string, int64_t> waits_for_report_;   // id -> since when, monotonic
  std::vector<ConfirmedIncident> open_;
  int64_t answered_ns_ = 0;  // when Fetch() last had an answer, monotonic
};

// The lines for stderr: what happened, what to do, where the report is.
std::string IncidentLines(const v1::Incident& incident);

}  // namespace rollcall
