// SPDX-License-Identifier: Apache-2.0
// Gets an incident by the word of a command line: a report on disk, or the id of a daemon's
// incident.
#pragma once

#include <optional>
#include <string>

#include "cli/query.h"

namespace rollcall {

class IncidentReader {
 public:
  // `command`: the subcommand, for errors.
  IncidentReader(const char* command, const DaemonAddress& daemon)
      : command_(command), address_(daemon) {}

  // Asks the daemon only for what is not on disk. False after an error, which it has printed;
  // exit_code() is then that of the command.
  bool Read(const std::string& word, v1::Incident* incident);
  int exit_code() const { return exit_code_; }

  // Answers more queries about the incidents.
  DaemonQuery& daemon();

 private:
  bool ReadFromDisk(const std::string& path, v1::Incident* incident);
  bool AskFor(const std::string& id, v1::Incident* incident);

  const char* const command_;
  const DaemonAddress address_;
  std::optional<DaemonQuery> daemon_;
  int exit_code_ = 0;
};

}  // namespace rollcall
