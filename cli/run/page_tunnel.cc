// SPDX-License-Identifier: Apache-2.0
#include "cli/run/page_tunnel.h"

#include "absl/strings/str_cat.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

bool IsSet(const GetVariable& get, const char* name) {
  const char* value = get(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string TunnelToPage(const std::string& address, const std::string& host,
                         const GetVariable& get) {
  if (!IsSet(get, "SSH_CONNECTION") && !IsSet(get, "SLURM_JOB_ID")) return "";
  if (address.empty() || !IsOnThisHost(address)) return "";
  const std::string port = address.substr(address.rfind(':') + 1);
  return absl::StrCat("ssh -L ", port, ":", address, " ", host);
}

}  // namespace rollcall
