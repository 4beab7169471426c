// SPDX-License-Identifier: Apache-2.0
// One daemon among several on a database, as the others see it. Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

struct DaemonRow {
  std::string name;            // unique among those of the database
  std::string address;         // HOST:PORT by which agents and other daemons reach it
  std::string page;            // URL, or empty
  std::string incarnation;     // unlike that of any other start of a daemon
  std::string secret;          // with which the other daemons ask it; never in a log or an answer
  int64_t lives_for_ns = 0;    // what is left of its lease, by the database's clock
  int64_t alive_since_ns = 0;  // wall clock of the database: since then its lease has not ended
};

}  // namespace rollcall
