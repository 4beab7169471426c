// SPDX-License-Identifier: Apache-2.0
// Whether the certificates of open connections still lead to an authority that this process
// believes. TLS looks only when a connection begins. Remembers its answers.
//
// Thread-safe. Time is an argument, in Unix time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace rollcall {

class TrustedChains {
 public:
  // `chain_pem`: the certificate, and what its holder sent with it.
  bool IsTrusted(std::string_view chain_pem, const std::string& ca_pem, int64_t now_s);

 private:
  struct Answer {
    bool is_trusted = false;
    int64_t given_s = 0;
  };

  Mutex mutex_;
  std::string ca_pem_ ABSL_GUARDED_BY(mutex_);  // to which the answers belong
  // Keyed by the digest of the chain. The daemon asks about each agent every few seconds, and a
  // check of signatures takes a hundred times as long as a digest.
  std::unordered_map<std::string, Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
