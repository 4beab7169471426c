// SPDX-License-Identifier: Apache-2.0
// What fleet_load simulates. main.cc fills it from flags; everybody else reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollcall::fleet {

inline constexpr int64_t kSecond = 1'000'000'000;
inline constexpr int64_t kMillisecond = 1'000'000;

inline int64_t ToNs(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// Times are seconds from the start of the load; 0 of a fault: it does not happen.
struct LoadOptions {
  std::vector<std::string> daemons;       // HOST:PORT; hosts are spread over them
  std::string tls_ca, tls_cert, tls_key;  // files; no `tls_ca`: plaintext
  std::string host_domain;                // after the names of the hosts: ".fleet"
  double seconds = 60;
  int threads = 2;
  uint64_t seed = 1;

  int jobs = 1;
  int ranks = 64;  // of each job
  int ranks_per_host = 8;
  int communicators = 0;         // of each rank, besides the one of all ranks
  double calls_per_second = 20;  // of each rank, on each communicator
  double tick = 1;               // seconds between two ticks of a host
  double start_within = 1;       // hosts connect for the first time within so many seconds
  int connecting = 0;            // so many hosts connect at the same time; 0 means any number
  int whole_records = 512;       // newest records of a rank and communicator in a whole tick

  double hang_at = 0;  // of jobs_cycle: from the begin of each job
  // of the jobs at the same time, so many hang within the second after hang_at
  int hang_jobs = 1;
  double mismatch_at = 0;  // a further job of 8 ranks makes contradicting calls

  double churn = 0;  // hosts a second that cut their stream and come back
  double late = 0;   // fraction of the hosts whose ticks travel for up to 2 s

  int jobs_cycle = 0;  // so many jobs run in all, one after the other; `jobs` at the same time
  double job_seconds = 5;
};

}  // namespace rollcall::fleet
