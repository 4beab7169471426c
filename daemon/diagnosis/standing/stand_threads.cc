// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_threads.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

// Fewer may differ by their roles.
constexpr size_t kLeastWaiting = 2;

using Names = std::set<std::string>;

Names FunctionsOf(const StandNode& rank) {
  Names functions;
  for (const StandThread& thread : rank.standing->threads) {
    std::string function = FindThreadFunction(thread);
    if (!function.empty()) functions.insert(std::move(function));
  }
  return functions;
}

Names Common(const Names& a, const Names& b) {
  Names common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(common, common.end()));
  return common;
}

// Empty if the ranks that wait have no thread in common, or are few.
Names FindFunctionsOfAll(const StandScene& scene, const StandBlame& blame) {
  Names of_all;
  size_t waiting = 0;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (blame.culprits.count(i) != 0) continue;
    const Names own = FunctionsOf(scene.Rank(i));
    of_all = waiting++ == 0 ? own : Common(of_all, own);
  }
  return waiting < kLeastWaiting ? Names() : of_all;
}

}  // namespace

std::string FindThreadFunction(const StandThread& thread) {
  absl::string_view last;
  for (const absl::string_view name : absl::StrSplit(thread.place.functions, ' ')) {
    const bool is_python = absl::StrContains(name, '.') && !absl::StrContains(name, "::");
    if (name == "threading.Thread.run" || name == "threading.Thread._bootstrap_inner") {
      return std::string(last);
    }
    if (is_python) last = name;
  }
  return "";
}

std::string FindLackingThread(const StandScene& scene, const StandBlame& blame, size_t culprit) {
  const StandNode& rank = scene.Rank(culprit);
  const bool waits_for_own = HasTrait(rank.in.kind, stands::kTakesWork);
  // Of those with so many, some are not listed.
  const bool knows_all = rank.standing->threads.size() < kMostStandThreads;
  if (!waits_for_own || !knows_all) return "";
  const Names own = FunctionsOf(rank);
  for (const std::string& function : FindFunctionsOfAll(scene, blame)) {
    if (own.count(function) == 0) return function.substr(function.find('.') + 1);
  }
  return "";
}

}  // namespace rollcall
