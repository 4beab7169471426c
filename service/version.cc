// SPDX-License-Identifier: Apache-2.0
#include "service/version.h"

#include "absl/strings/str_cat.h"

namespace rollcall {

std::string VersionLine(const std::string& program) {
  const std::string commit = kCommit;
  return absl::StrCat(program, " ", ROLLCALL_VERSION,
                      commit.empty() ? "" : absl::StrCat(" (commit ", commit, ")"));
}

}  // namespace rollcall
