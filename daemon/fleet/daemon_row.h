// SPDX-License-Identifier: Apache-2.0
// A daemon among several on one database, as the database lists it.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

struct DaemonRow {
  std::string name;         // --daemon-name
  std::string address;      // HOST:PORT for agents and the other daemons
  std::string page;         // URL; "": none
  std::string incarnation;  // of its process: another one after each start
  // Of its incarnation: the other daemons show it when they ask. Never in a log or an answer.
  std::string secret;
  int64_t lives_for_ns = 0;    // of its lease, by the database's clock
  int64_t alive_since_ns = 0;  // wall clock: the first renewal of this incarnation
};

}  // namespace rollcall
