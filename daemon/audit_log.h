// SPDX-License-Identifier: Apache-2.0
// What operators did, and what they and others were refused: in the log and in the history.
// Thread-safe.
#pragma once

#include "daemon/access/audit.h"
#include "daemon/access/refused_actions.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/timeline.h"

namespace rollcall {

class AuditLog {
 public:
  // Both must outlive this.
  AuditLog(IncidentBook* incidents, Timeline* timeline)
      : incidents_(incidents), timeline_(timeline) {}

  void Record(const AuditEntry& event);
  // `event.object`: why it was refused.
  void RecordRefusal(const AuditEntry& event);

  AuditSink recorder() {
    return [this](const AuditEntry& event) { Record(event); };
  }
  AuditSink refusal_recorder() {
    return [this](const AuditEntry& event) { RecordRefusal(event); };
  }

 private:
  IncidentBook* const incidents_;
  Timeline* const timeline_;
  RefusedActions refused_;
};

}  // namespace rollcall
