// SPDX-License-Identifier: Apache-2.0
// What people do with incidents and their alerts: they acknowledge, write notes, and silence.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/incidents/incident_store.h"
#include "daemon/model/tenants.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class OperatorActions {
 public:
  // Both outlive this object.
  OperatorActions(IncidentStore* store, const IncidentWriters* writers)
      : store_(store), writers_(writers) {}

  // Changes an incident as a person asks, and stores it. `change` runs under the store's mutex: it
  // must be quick, and its error is returned. kNotFound as BookReader::Get(); other errors of
  // the history as well.
  absl::Status Change(const std::string& id,
                      const std::function<absl::Status(v1::Incident*)>& change);

  // Holds back alerts for a time; stored. Errors as of Silences.
  absl::StatusOr<v1::Silence> AddSilence(const v1::Silence& wanted, int64_t seconds,
                                         const std::string& who, const Tenants& tenants);
  absl::StatusOr<v1::Silence> EndSilence(const std::string& id, const Tenants& tenants);
  // Takes over what other daemons on the same database have begun or ended. Waits for the history,
  // some seconds at most; without its answer nothing changes.
  void RefreshSilences();

  // What people did outlives the daemon once they have its answer: waits until all of the above is
  // in the history, or for two seconds if its disk is slow.
  void AwaitSaved();

 private:
  bool ChangeInMemory(const std::string& id,
                      const std::function<absl::Status(v1::Incident*)>& change,
                      absl::Status* status);

  IncidentStore* const store_;
  const IncidentWriters* const writers_;
  Mutex changing_;  // of Change(), before the store's
};

}  // namespace rollcall
