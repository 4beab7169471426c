// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/outside_words.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/words/places.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedChildren = 2;
constexpr size_t kLongestExceptionWords = 120;

}  // namespace

std::string ExceptionInWords(const RankException& handled) {
  const PlaceException& exception = handled.exception;
  StackPlace place;
  place.at = exception.at;
  const std::string where = PlaceInWords(place);
  return absl::StrCat("rank ", handled.rank, " is handling ", exception.type,
                      exception.text.empty() ? "" : ": ",
                      CutText(exception.text, kLongestExceptionWords, "..."),
                      where.empty() ? "" : absl::StrCat(" (", where, ")"));
}

std::string ThreadFailureInWords(const Culprit& culprit) {
  const std::string& thread = culprit.failed_thread;
  return absl::StrCat(thread.empty() ? "a thread" : absl::StrCat("thread \"", thread, "\""),
                      " of rank ", culprit.rank, " ended with ",
                      CutText(culprit.thread_error, kLongestExceptionWords, "..."));
}

std::string WorkInWords(const RankOutside& outside) {
  if (outside.children.empty()) {
    return absl::StrFormat("it receives %.1f kB a second", outside.receives / 1000);
  }
  std::vector<std::string> pids;
  for (const ChildAtWork& child : outside.children) {
    if (child.pid != 0) pids.push_back(absl::StrCat(child.pid));
  }
  if (pids.empty()) return "the processes that it starts work";
  const bool is_one = pids.size() == 1;
  const size_t more = pids.size() - std::min(kNamedChildren, pids.size());
  pids.resize(pids.size() - more);
  return absl::StrCat(
      is_one ? "its process " : "its processes ", absl::StrJoin(pids, more == 0 ? " and " : ", "),
      more == 0 ? "" : absl::StrCat(" and ", more, " more"), is_one ? " works" : " work");
}

std::string SocketInWords(const RankSocket& socket) {
  const char* wait = socket.they_wait ? PluralForm(socket.others.size(), ", which waits for it",
                                                   ", which wait for it")
                                      : "";
  return absl::StrCat("rank ", socket.rank, " waits at a socket for ", RanksInWords(socket.others),
                      wait);
}

std::string KeeperInWords(const RankKeeper& keeper) {
  const std::string& name = keeper.thread.name;
  const std::string place = PlaceInWords(keeper.thread.place);
  return absl::StrCat(
      "thread ", name.empty() ? absl::StrCat(keeper.thread.tid) : absl::StrCat("\"", name, "\""),
      " of rank ", keeper.rank, place.empty() ? "" : " in ", place,
      place.find(", ") == std::string::npos ? "" : ",", " keeps its process alive");
}

std::string OutsideInWords(const Verdict& verdict) {
  std::vector<std::string> parts;
  if (!verdict.handled.exception.type.empty()) parts.push_back(ExceptionInWords(verdict.handled));
  const auto failed =
      std::find_if(verdict.culprits.begin(), verdict.culprits.end(),
                   [](const Culprit& culprit) { return !culprit.thread_error.empty(); });
  if (failed != verdict.culprits.end()) parts.push_back(ThreadFailureInWords(*failed));
  if (verdict.outside.rank >= 0) parts.push_back(WorkInWords(verdict.outside));
  if (!verdict.socket.others.empty()) parts.push_back(SocketInWords(verdict.socket));
  if (verdict.keeper.rank >= 0) parts.push_back(KeeperInWords(verdict.keeper));
  return parts.empty() ? "" : absl::StrCat("; ", absl::StrJoin(parts, "; "));
}

}  // namespace rollcall
