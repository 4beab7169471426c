// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/terms.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

constexpr size_t kNamedHosts = 2;    // where there are more than kMostHosts
constexpr size_t kLongestName = 64;  // of a communicator, in a sentence

}  // namespace

const char* PluralForm(size_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

std::string CountInWords(uint64_t count, const char* one, const char* many) {
  return absl::StrCat(count, " ", PluralForm(count, one, many));
}

std::string RankList(std::vector<int32_t> ranks) { return RankRanges(std::move(ranks)).List(); }

std::string RanksInWords(std::vector<int32_t> ranks) {
  return RankRanges(std::move(ranks)).InWords();
}

std::string HostsInWords(const std::set<std::string>& hosts) {
  if (hosts.size() <= kMostHosts) return absl::StrJoin(hosts, ", ");
  return absl::StrCat(hosts.size(), " hosts, among them ",
                      absl::StrJoin(hosts.begin(), std::next(hosts.begin(), kNamedHosts), ", "));
}

std::string OpInWords(Op op) {
  const char* name = OpName(op);
  if (name != nullptr) return name;
  if (op == Op::kNone) return "a call";
  return absl::StrCat("call with op code ", static_cast<int>(op));
}

const char* OtherEndInWords(Op op) {
  if (op == Op::kWaitSignal) return "signal";
  return IsSendSide(op) ? "receive" : "send";
}

std::string DtypeInWords(uint8_t dtype) {
  if (dtype == kNoDtype) return "";
  const char* name = DtypeName(dtype);
  return name != nullptr ? name : absl::StrCat("dtype ", dtype);
}

std::string ReductionInWords(uint8_t reduction) {
  if (reduction == kNoReduction) return "";
  const char* name = ReductionName(reduction);
  return name != nullptr ? name : absl::StrCat("reduction ", reduction);
}

std::string CallInWords(const CallArgs& call) {
  std::vector<std::string> args;
  const std::string dtype = DtypeInWords(call.dtype);
  if (!dtype.empty()) {
    args.push_back(absl::StrCat(dtype, " x ", call.count, call.shape == nullptr ? "" : " as ",
                                call.shape == nullptr ? "" : *call.shape));
  } else if (call.count != 0) {
    args.push_back(absl::StrCat(call.count, " bytes"));  // MPI's
  }
  const std::string reduction = ReductionInWords(call.reduction);
  if (!reduction.empty()) args.push_back(reduction);
  if (call.peer != kNoPeer) {
    args.push_back(absl::StrCat(OpKind(call.op) == CallKind::kP2p ? "peer " : "root ", call.peer));
  }
  return absl::StrCat(OpInWords(call.op), "(", absl::StrJoin(args, ", "), ")");
}

std::string CommunicatorInWords(uint64_t id, const std::string& name, CommKind kind) {
  if (kind == CommKind::kStore) {
    return absl::StrCat("key \"", CutText(name, kLongestName, "..."), "\" of the store");
  }
  // It does not exist yet, and its name is the line that makes it.
  if (id == 0 && !name.empty()) {
    return absl::StrCat("the new communicator of ", CutText(name, kLongestName, "..."));
  }
  const char* library = CommKindName(kind);
  return absl::StrCat(library, library[0] == '\0' ? "" : " ", "communicator ",
                      name.empty() ? IdInHex(id).substr(0, 8)
                                   : absl::StrCat("\"", CutText(name, kLongestName, "..."), "\""));
}

std::string IdInHex(uint64_t id) { return absl::StrFormat("%016x", id); }

std::string StepInWords(int64_t step, const std::string& phase) {
  return phase.empty() ? absl::StrCat("step ", step)
                       : absl::StrCat("step ", step, " (", phase, ")");
}

std::string ResultInWords(int32_t code) {
  static const char* const kNames[] = {
      "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
      "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
  const bool known = code >= 0 && static_cast<size_t>(code) < sizeof(kNames) / sizeof(kNames[0]);
  return known ? kNames[code] : absl::StrCat("ncclResult_t ", code);
}

std::string DurationInWords(int64_t ns) {
  if (ns < 10 * kSecond) {
    const int64_t tenths = std::max<int64_t>(ns, 0) / (kSecond / 10);
    return tenths % 10 == 0 ? absl::StrCat(tenths / 10, " s")
                            : absl::StrCat(tenths / 10, ".", tenths % 10, " s");
  }
  const int64_t seconds = ns / kSecond;
  if (seconds < 120) return absl::StrCat(seconds, " s");
  if (seconds < 7200) return absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
  return absl::StrCat(seconds / 3600, " h ", seconds % 3600 / 60, " min");
}

std::string MillisecondsInWords(int64_t ns) {
  if (ns >= 10 * kSecond) return DurationInWords(ns);
  return absl::StrCat(ns / 1'000'000, " ms");
}

}  // namespace rollcall
