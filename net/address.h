// SPDX-License-Identifier: Apache-2.0
// HOST:PORT, the format of address flags.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rollcall {

struct Address {
  std::string host;
  int port = 0;
};

// `flag` is the flag's name, for the error message.
inline absl::StatusOr<Address> ParseAddress(const std::string& flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  Address address;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", text, ": not HOST:PORT, for example ", flag, "=127.0.0.1:8080"));
  }
  address.host = text.substr(0, colon);
  return address;
}

}  // namespace rollcall
