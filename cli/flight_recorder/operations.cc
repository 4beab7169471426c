// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/operations.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

enum class Counted : uint8_t { kInput, kOutput, kNothing };

struct Known {
  const char* name;  // without backend and leading underscores
  Op op;
  Counted counted;
};

constexpr Known kKnown[] = {
    {"all_reduce", Op::kAllReduce, Counted::kInput},
    {"allreduce", Op::kAllReduce, Counted::kInput},
    {"all_reduce_barrier", Op::kAllReduce, Counted::kInput},
    {"barrier", Op::kAllReduce, Counted::kInput},
    {"all_reduce_sparse", Op::kAllReduce, Counted::kNothing},
    {"allreduce_coalesced", Op::kAllReduce, Counted::kInput},
    {"all_reduce_coalesced", Op::kAllReduce, Counted::kInput},
    {"broadcast", Op::kBroadcast, Counted::kInput},
    {"broadcast_oop", Op::kBroadcast, Counted::kInput},
    {"reduce", Op::kReduce, Counted::kInput},
    {"reduce_oop", Op::kReduce, Counted::kInput},
    {"all_gather", Op::kAllGather, Counted::kInput},
    {"allgather", Op::kAllGather, Counted::kInput},
    {"all_gather_base", Op::kAllGather, Counted::kInput},
    {"allgather_base", Op::kAllGather, Counted::kInput},
    {"all_gather_into_tensor", Op::kAllGather, Counted::kInput},
    {"all_gather_into_tensor_coalesced", Op::kAllGather, Counted::kInput},
    {"reduce_scatter", Op::kReduceScatter, Counted::kOutput},
    {"reduce_scatter_base", Op::kReduceScatter, Counted::kOutput},
    {"reduce_scatter_tensor", Op::kReduceScatter, Counted::kOutput},
    {"reduce_scatter_tensor_coalesced", Op::kReduceScatter, Counted::kOutput},
    {"all_to_all", Op::kAlltoAll, Counted::kNothing},
    {"alltoall", Op::kAlltoAll, Counted::kNothing},
    {"all_to_allv", Op::kAlltoAll, Counted::kNothing},
    {"all_to_all_single", Op::kAlltoAll, Counted::kNothing},
    {"gather", Op::kGather, Counted::kInput},
    {"scatter", Op::kScatter, Counted::kOutput},
    {"send", Op::kSend, Counted::kInput},
    {"recv", Op::kRecv, Counted::kInput},
    {"recvAnySource", Op::kRecv, Counted::kInput},
};

// c10's names, in the order of ncclDataType_t.
constexpr const char* kDtypes[] = {"Char",   "Byte",     "Int",           "UInt32",
                                   "Long",   "UInt64",   "Half",          "Float",
                                   "Double", "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};

constexpr size_t kMostUnknown = 30;

// Codes that calls.def gives to no call, for unknown operations and for those beyond kMostUnknown.
const std::vector<Op>& UnknownCodes() {
  static const auto* codes = [] {
    auto* free = new std::vector<Op>;
    for (int code = UINT8_MAX; free->size() <= kMostUnknown; --code) {
      if (OpName(static_cast<Op>(code)) == nullptr) free->push_back(static_cast<Op>(code));
    }
    return free;
  }();
  return *codes;
}

const Known* Find(const std::string& operation) {
  const auto at = std::find_if(std::begin(kKnown), std::end(kKnown),
                               [&](const Known& k) { return operation == k.name; });
  return at == std::end(kKnown) ? nullptr : at;
}

uint8_t ParseDtype(const std::string& name) {
  if (name == "Bool") return 1;  // PyTorch sends it as uint8
  const auto at = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                               [&](const char* dtype) { return name == dtype; });
  return at == std::end(kDtypes) ? kNoDtype : static_cast<uint8_t>(at - std::begin(kDtypes));
}

// A list may hold tensors of several sizes. Then the ranks' counts differ in a healthy job.
bool IsUneven(const std::vector<uint64_t>& counts) {
  return !counts.empty() &&
         std::any_of(counts.begin(), counts.end(), [&](uint64_t n) { return n != counts[0]; });
}

uint64_t CountElements(const Known& known, const DumpedCall& call) {
  const bool many = known.op == Op::kAllGather || known.op == Op::kReduceScatter;
  const bool coalesced = absl::EndsWith(known.name, "coalesced");
  if (known.counted == Counted::kNothing) return call.exchanged;
  if (call.is_in_list) return 0;
  if (many && !coalesced && (IsUneven(call.input_counts) || IsUneven(call.output_counts))) return 0;
  const auto& counts = known.counted == Counted::kInput ? call.input_counts : call.output_counts;
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

}  // namespace

std::string OperationName(const std::string& profiling_name) {
  const size_t colon = profiling_name.find(':');
  std::string name = colon == std::string::npos ? profiling_name : profiling_name.substr(colon + 1);
  name.erase(0, name.find_first_not_of('_'));
  return name.substr(0, name.find(' '));
}

bool IsCoalescedEnd(const std::string& profiling_name) {
  return absl::EndsWith(OperationName(profiling_name), "coalesced");
}

bool IsAllToAll(const std::string& profiling_name) {
  const Known* known = Find(OperationName(profiling_name));
  return known != nullptr && known->op == Op::kAlltoAll;
}

OperationTable::OperationTable(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const bool known = Find(name) != nullptr || name == "coalesced";
    if (!known && unknown_.size() < kMostUnknown) unknown_.push_back(name);
  }
}

Op OperationTable::FindOp(const std::string& operation) const {
  const Known* known = Find(operation);
  if (known != nullptr) return known->op;
  const auto at = std::find(unknown_.begin(), unknown_.end(), operation);
  return UnknownCodes()[std::min<size_t>(static_cast<size_t>(at - unknown_.begin()), kMostUnknown)];
}

std::vector<std::string> OperationTable::Warnings() const {
  std::vector<std::string> warnings;
  for (size_t i = 0; i < unknown_.size(); ++i) {
    warnings.push_back(absl::StrCat("unknown operation \"", unknown_[i],
                                    "\": Rollcall reports it as call with op code ",
                                    static_cast<int>(UnknownCodes()[i])));
  }
  return warnings;
}

CallArgs OperationTable::MakeArgs(const std::vector<const DumpedCall*>& one_call) const {
  CallArgs args;
  const DumpedCall& last = *one_call.back();
  // The last record of a coalesced call may have no operation of its own. The members have it.
  const DumpedCall& named = OperationName(last.name) == "coalesced" ? *one_call.front() : last;
  const std::string operation = OperationName(named.name);
  args.op = FindOp(operation);
  args.dtype = ParseDtype(named.dtype);
  const Known* known = Find(operation);
  for (const DumpedCall* call : one_call) {
    if (known != nullptr) args.count += CountElements(*known, *call);
  }
  return args;
}

int32_t ParsePeer(const std::string& profiling_name) {
  size_t at = profiling_name.find("->");
  if (at == std::string::npos) at = profiling_name.find("<-");
  int32_t peer = -1;
  if (at == std::string::npos || !absl::SimpleAtoi(profiling_name.substr(at + 2), &peer)) return -1;
  return peer;
}

}  // namespace rollcall
