// SPDX-License-Identifier: Apache-2.0
// How to reach the history in PostgreSQL. Plain values.
#pragma once

#include <chrono>
#include <string>

namespace rollcall {

struct PostgresTimes {
  std::chrono::seconds connect{5};  // for each address of the server
  std::chrono::seconds answer{15};  // for a statement; the server itself gives up a second before
  std::chrono::seconds lock{3};     // for a lock that another session has
  // Limits a pause in the middle of a transaction. A daemon that stands still there keeps rows of
  // `owners` locked, and others wait for them: less than a lease.
  std::chrono::seconds pause{4};
};

struct PostgresOptions {
  std::string url;     // postgresql://...; empty if there is no such store
  std::string daemon;  // this daemon's name, of its own among those of the database
  PostgresTimes times;
  // Unlike that of any other start of a daemon (daemon/fleet/daemon_row.h); empty if there is no
  // fleet.
  std::string incarnation;
};

}  // namespace rollcall
