// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/incident_reader.h"

#include <iostream>
#include <utility>

#include "base/clean_text.h"
#include "cli/commands.h"
#include "cli/reports/report_on_disk.h"
#include "daemon/access/clean_message.h"

namespace rollcall {

DaemonQuery& IncidentReader::daemon() {
  if (!daemon_) daemon_.emplace(address_);
  return *daemon_;
}

bool IncidentReader::Read(const std::string& word, v1::Incident* incident) {
  return IsReportPath(word) ? ReadFromDisk(word, incident) : AskFor(word, incident);
}

bool IncidentReader::ReadFromDisk(const std::string& path, v1::Incident* incident) {
  absl::StatusOr<v1::Incident> read = ReadReport(path);
  if (read.ok()) {
    *incident = *std::move(read);
    return true;
  }
  std::cerr << "rollcall " << command_ << ": " << CleanText(std::string(read.status().message()))
            << "\n";
  exit_code_ = kExitBadUsage;
  return false;
}

bool IncidentReader::AskFor(const std::string& id, v1::Incident* incident) {
  v1::IncidentRequest request;
  request.set_id(id);
  const bool answered = daemon().Ask(command_, [&](auto* stub, auto* context) {
    return stub->GetIncident(context, request, incident);
  });
  exit_code_ = daemon().exit_code();
  if (answered) CleanStrings(incident);
  return answered;
}

}  // namespace rollcall
