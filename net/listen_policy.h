// SPDX-License-Identifier: Apache-2.0
// Which addresses the daemon may open. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace rollcall {

struct ListenGuards {
  bool has_tls = false;
  bool has_authenticator = false;  // identifies callers of other hosts: by certificate, token,
                                   // password
  bool is_insecure = false;        // --insecure
  bool offers_tls = true;          // the program has the flags for it; `rollcall run` has not
};

// Loopback addresses and unix sockets are open to the same user; others need TLS and an
// authenticator, or --insecure. `flag` and `address` are for the error, which names what to type.
absl::Status CheckListen(const std::string& flag, const std::string& address,
                         const ListenGuards& guards);

}  // namespace rollcall
