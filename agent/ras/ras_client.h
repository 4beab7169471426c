// SPDX-License-Identifier: Apache-2.0
// Asks the RAS of one process that uses NCCL for its data about its job: the protocol of NCCL's own
// `ncclras`, lines of text over TCP.
//
// The answer is a stranger's: any program may listen there. It is cleaned, and its size and the
// time for it have limits. A process that is stopped accepts and never answers, so the greeting is
// repeated on a new connection; the query itself is sent once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "agent/outside/tcp_table.h"

namespace rollcall {

struct RasLimits {
  int64_t connect_ns = 1'000'000'000;
  int64_t greeting_ns = 1'000'000'000;  // of each try
  int64_t answer_ns = 5'000'000'000;    // for the answer, after the greeting
  int64_t total_ns = 7'000'000'000;
  int tries = 3;
  // How long RAS waits for the processes of its job that do not answer it.
  int ras_seconds = 2;
  size_t most_bytes = 4 << 20;
};

struct RasText {
  std::string text;   // lines without control characters
  bool json = false;  // NCCL 2.28.7 and later; else as `ncclras -v` prints it
  bool cut = false;   // it was longer than the limit, or RAS did not end it in time
};

// Errors are for people: what is at this address, and what it did. `local` is an address of this
// network namespace; of a socket that listens at all addresses, loopback is asked.
absl::StatusOr<RasText> AskRasAt(const TcpEnd& local, const RasLimits& limits = {});

}  // namespace rollcall
