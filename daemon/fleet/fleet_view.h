// SPDX-License-Identifier: Apache-2.0
// What a daemon sees of the other daemons on its database. Thread-safe; nothing here waits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/fleet/daemon_row.h"

namespace rollcall {

class FleetView {
 public:
  virtual ~FleetView() = default;
  // Returns the living ones, this one included.
  virtual std::vector<DaemonRow> Daemons() const = 0;
  // The name of this one; empty if there is no fleet.
  virtual std::string self() const = 0;
  // Returns the owner of the job, as far as known. An empty tenant means any.
  virtual std::optional<DaemonRow> OwnerOf(const std::string& tenant,
                                           const std::string& job) const = 0;
  // Whether this daemon can prove that no other has its place.
  virtual bool HoldsLease() const = 0;
};

}  // namespace rollcall
