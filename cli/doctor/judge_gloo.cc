// SPDX-License-Identifier: Apache-2.0
// Whether the library can record the calls of the program's gloo groups.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/doctor/checks.h"

namespace rollcall::doctor {
namespace {

std::string NameOfTorch(const GlooFacts& gloo) {
  return absl::StrCat("PyTorch", gloo.version.empty() ? "" : " ", gloo.version, " (", gloo.path,
                      ")");
}

std::string Part(const char* before, const std::vector<std::string>& names) {
  return names.empty() ? "" : absl::StrCat("; ", before, ": ", absl::StrJoin(names, ", "));
}

}  // namespace

Judgement JudgeGloo(const Facts& facts) {
  const GlooFacts& gloo = facts.gloo;
  if (facts.program.command.empty()) return {State::kNotApplicable, "no program named", ""};
  if (gloo.path.empty()) {
    return {State::kNotApplicable, "no PyTorch in the program's folders: no gloo to record", ""};
  }
  if (gloo.found == 0) {
    return {State::kNotApplicable, NameOfTorch(gloo) + " was built without gloo", ""};
  }
  const std::string what = absl::StrCat(
      "found ", gloo.found, " of ", gloo.known, " functions of gloo in ", NameOfTorch(gloo),
      Part("not in this version", gloo.absent),
      Part("not recorded, because their arguments are new", gloo.changed),
      Part("missing, so that calls may lack their ends, names or messages", gloo.lost));
  if (gloo.changed.empty() && gloo.lost.empty()) return {State::kOk, what, ""};
  return {State::kWarning, what,
          "install the wheel of a newer release:  pip install --force-reinstall WHEEL"};
}

}  // namespace rollcall::doctor
