// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/who_differs.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/program_line.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostPlacesNamed = 4;

}  // namespace

std::string WhoDiffers(const std::vector<RankStack>& stacks) {
  std::map<std::string, std::vector<int32_t>> by_place;
  for (const auto& [rank, stack] : stacks) {
    const std::string at = FindPlace(stack).at;
    if (!at.empty()) by_place[SiteInWords(at)].push_back(rank);
  }
  if (by_place.empty()) return "";
  if (by_place.size() == 1 && stacks.size() > 1 &&
      by_place.begin()->second.size() == stacks.size()) {
    return absl::StrCat("all ", stacks.size(), " ranks are at ", by_place.begin()->first);
  }
  std::vector<std::pair<std::string, std::vector<int32_t>>> places(by_place.begin(),
                                                                   by_place.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<std::string> parts;
  for (const auto& [at, ranks] : places) {
    if (parts.size() == kMostPlacesNamed) {
      parts.push_back(absl::StrCat("and ", places.size() - kMostPlacesNamed, " more places"));
      break;
    }
    parts.push_back(
        absl::StrCat(RanksInWords(ranks), PluralForm(ranks.size(), " is", " are"), " at ", at));
  }
  return absl::StrJoin(parts, "; ");
}

v1::ProcessStack WithoutInterpreter(v1::ProcessStack stack) {
  for (v1::ThreadStack& thread : *stack.mutable_threads()) {
    auto* frames = thread.mutable_frames();
    const auto rest = std::remove_if(frames->begin(), frames->end(),
                                     [](const v1::Frame& frame) { return frame.interpreter(); });
    frames->erase(rest, frames->end());
  }
  return stack;
}

}  // namespace rollcall
