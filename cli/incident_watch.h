// Tells `rollcall run` of incidents that have been confirmed, each once, in the
// few lines that go to its stderr.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace grpc {
class ChannelInterface;
}

namespace rollcall {

class Daemon;

class IncidentWatch {
 public:
  struct News {
    std::string incident_id;
    std::string summary;
    std::string report_path;  // "" where there is no report on disk
    std::string text;         // for stderr, whole lines
    bool is_over = false;     // the job had ended by itself when it was found
    bool has_failed = false;  // a rank has ended: its launcher may see to the others
    int64_t waited_ns = 0;
  };

  // Of the embedded daemon, which writes the reports itself (`reports`), or is
  // without a folder for them: then the text holds the whole report.
  static std::unique_ptr<IncidentWatch> OfDaemon(const Daemon* daemon, std::string job,
                                                 bool reports);
  // Of a daemon elsewhere. Reports are written here too, to `report_dir`.
  static std::unique_ptr<IncidentWatch> OfDaemonAt(std::string address,
                                                   std::shared_ptr<grpc::ChannelInterface> channel,
                                                   std::string job, std::string report_dir);
  virtual ~IncidentWatch() = default;

  // Those confirmed since the last call whose report is complete.
  std::vector<News> Look();

  // Whether this incident was not over when Look() last got an answer.
  bool IsOpen(const std::string& incident_id) const { return open_.count(incident_id) > 0; }

 protected:
  explicit IncidentWatch(bool reports) : reports_(reports) {}
  // Nothing where nobody can say just now.
  virtual std::optional<std::vector<v1::Incident>> Fetch() = 0;

 private:
  const bool reports_;
  std::set<std::string> told_, open_;  // incidents' ids
};

// The lines for stderr: what happened, what to do, where the report is.
std::string IncidentLines(const v1::Incident& incident);

}  // namespace rollcall
