// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/cause_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "daemon/model/verdict.h"

namespace rollcall {

const std::vector<std::string>& CauseNames() {
  static const auto& names = *new std::vector<std::string>{
#define X(name, text) text,
      ROLLCALL_CAUSES(X)
#undef X
  };
  return names;
}

absl::Status CheckCauseName(const std::string& name) {
  const std::vector<std::string>& all = CauseNames();
  if (std::find(all.begin(), all.end(), name) != all.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no cause \"", CleanText(name), "\"; causes are ", absl::StrJoin(all, ", ")));
}

}  // namespace rollcall
