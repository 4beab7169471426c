// SPDX-License-Identifier: Apache-2.0
// Tells the job itself about its incidents: a line of JSON for each in a file in the folder of the
// segments. The Python package reads it and puts the incident into the job's experiment trackers.
//
// A process that reads the file keeps a file "linker-<pid>" beside it until it has read that the
// job is to end. A process that writes there can only delay the end of its own job, by a few
// seconds.
#pragma once

#include <cstdint>
#include <string>

#include "cli/run/incident_watch.h"

namespace rollcall {

class IncidentFile {
 public:
  // `folder`: of the segments; if empty, nothing is written.
  explicit IncidentFile(std::string folder) : folder_(std::move(folder)) {}

  // Adds the incident. Prints why it cannot.
  void Add(const ConfirmedIncident& incident);

  // Adds that --on-hang=abort ends the job.
  void AddEnd();

  // Whether a process of the job has still to read that the job is to end. False for good after a
  // few seconds. `now_ns`: monotonic.
  bool HasReader(int64_t now_ns);

 private:
  void Write(const std::string& line);
  bool HasMarker() const;

  const std::string folder_;
  int64_t until_ns_ = 0;  // 0 if not asked yet
};

// One line, without its end.
std::string LineOf(const ConfirmedIncident& incident);

}  // namespace rollcall
