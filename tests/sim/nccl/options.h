// SPDX-License-Identifier: Apache-2.0
// The simulated NCCL's settings, from environment variables, read once.
//
//   ROLLCALL_SIM_LAZY_CONNECT=0   no call blocks at first contact with a peer
//   ROLLCALL_SIM_MISMATCH=hang|wrong   the effect of differing byte counts or roots
//   ROLLCALL_SIM_SEED=N           chooses between the two for each mismatch
//   ROLLCALL_SIM_EAGER=BYTES      sends up to this size end before they are received
//   ROLLCALL_SIM_SERIALIZE=1      one NCCL kernel at a time on a device
//   ROLLCALL_SIM_DESTROY=collective    destroy and finalize wait for all ranks, in the last rank
//                                 of each process
//   ROLLCALL_SIM_PEER_DEATH=error ncclRemoteError from ncclCommGetAsyncError
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace rollcall::sim {

struct Options {
  bool lazy_connect;
  bool mismatch_is_wrong;
  bool seeded;
  uint64_t seed;
  uint64_t eager_bytes;
  bool serialize;
  bool collective_destroy;
  bool peer_death_is_error;
};

inline bool EnvironmentIs(const char* name, const char* value) {
  const char* found = getenv(name);
  return found != nullptr && strcmp(found, value) == 0;
}

inline uint64_t EnvironmentNumber(const char* name) {
  const char* found = getenv(name);
  return found == nullptr ? 0 : strtoull(found, nullptr, 0);
}

inline const Options& GetOptions() {
  static const Options options = {
      !EnvironmentIs("ROLLCALL_SIM_LAZY_CONNECT", "0"),
      EnvironmentIs("ROLLCALL_SIM_MISMATCH", "wrong"),
      getenv("ROLLCALL_SIM_SEED") != nullptr && getenv("ROLLCALL_SIM_MISMATCH") == nullptr,
      EnvironmentNumber("ROLLCALL_SIM_SEED"),
      EnvironmentNumber("ROLLCALL_SIM_EAGER"),
      EnvironmentIs("ROLLCALL_SIM_SERIALIZE", "1"),
      EnvironmentIs("ROLLCALL_SIM_DESTROY", "collective"),
      EnvironmentIs("ROLLCALL_SIM_PEER_DEATH", "error")};
  return options;
}

}  // namespace rollcall::sim
