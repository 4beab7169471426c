// SPDX-License-Identifier: Apache-2.0
// What GPUs of an incident's ranks did.
#include "daemon/incidents/incident_book.h"
#include "daemon/report/gpu/gpu_dumps.h"

namespace rollcall {

void IncidentBook::AddGpuDump(const JobKey& job, const std::string& incident,
                              const v1::GpuDump& dump) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  Record* record = known == jobs_.end() ? nullptr : FindRecord(incident, &known->second);
  if (record == nullptr) return;
  AddToIncident(dump, &record->incident);
  record->dirty = true;
  record->unsaved = true;
  SetPending(known->second, *record);
  ++known->second.changes;
  ++changes_;
}

}  // namespace rollcall
