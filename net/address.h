// SPDX-License-Identifier: Apache-2.0
// HOST:PORT, the format of address flags.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rollcall {

struct Address {
  std::string host;  // as written: an address of IPv6 is in brackets
  int port = 0;
};

// "::1" of "[::1]", as the system's functions take it.
inline std::string WithoutBrackets(const std::string& host) {
  const bool has = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  return has ? host.substr(1, host.size() - 2) : host;
}

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
