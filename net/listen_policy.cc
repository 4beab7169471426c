// SPDX-License-Identifier: Apache-2.0
#include "net/listen_policy.h"

#include "absl/strings/str_cat.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

std::string WhatIsMissing(const ListenGuards& guards) {
  if (guards.has_tls) return "a way to authenticate its callers";
  return guards.has_authenticator ? "TLS" : "TLS and a way to authenticate its callers";
}

}  // namespace

absl::Status CheckListen(const std::string& flag, const std::string& address,
                         const ListenGuards& guards) {
  if (address.empty() || IsOnThisHost(address) || guards.is_insecure) return absl::OkStatus();
  if (guards.has_tls && guards.has_authenticator) return absl::OkStatus();
  if (!guards.offers_tls) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, "=", address, ": other hosts can reach this address, and this page has no TLS",
        "\n  this host:     ", flag,
        "=127.0.0.1:PORT, and a tunnel: ssh -L PORT:127.0.0.1:PORT HOST",
        "\n  no protection: --insecure   (the token in the page's address crosses the network in "
        "clear)"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flag, "=", address, ": other hosts can reach this address, so it needs ",
      WhatIsMissing(guards),
      "\n  certificates:  rollcall pki init DIR && rollcall pki issue DIR --role=daemon "
      "--host=NAME",
      "\n                 and --tls-cert=FILE --tls-key=FILE --tls-client-ca=FILE"
      "\n  or tokens:     rollcall token new --file=FILE --name=NAME --role=agent --host=HOST"
      "\n                 and --tls-cert=FILE --tls-key=FILE --token-file=FILE"
      "\n  this host:     ",
      flag, "=127.0.0.1:PORT",
      "\n  no protection: --insecure   (every client that reaches the address may do everything)"));
}

}  // namespace rollcall
