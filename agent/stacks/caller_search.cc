// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/caller_search.h"

#include <algorithm>

#include "agent/stacks/call_instructions.h"
#include "agent/stacks/word.h"

namespace rollcall {
namespace {

constexpr size_t kPrologueBytes = 96;
// How far back the search looks for the start of a function. If the start is not known, a call to
// an address this near before the function's instruction counts as a call to the function, unless
// another function begins in between.
constexpr uint64_t kMaxBytesBack = 4096;
constexpr size_t kMaxCandidates = 24;

// Reads the call that ends at `return_address`. nullopt if the code is in no file.
std::optional<CallInstruction> ReadCall(uint64_t return_address, SearchedMemory* memory) {
  uint8_t before[kMaxCallBytes];
  const uint64_t begin = return_address - sizeof(before);
  if (!memory->ReadCode(begin, before, sizeof(before))) return std::nullopt;
  return DecodeCall(return_address, before);
}

// Whether the process stores the address to which the call leads: an entry of the linkage table
// goes on at such an address.
bool IsByPointer(const CallInstruction& call, SearchedMemory* memory) {
  if (call.kind != CallTarget::kDirect) return call.kind == CallTarget::kIndirect;
  uint8_t code[kJumpBytes];
  return memory->IsCode(call.target) && memory->ReadCode(call.target, code, sizeof(code)) &&
         IsJumpByPointer(code);
}

// The function, and what its own code shows about its frame.
class CallerSearch {
 public:
  CallerSearch(const SearchedFunction& function, SearchedMemory* memory)
      : function_(function), memory_(memory), start_(function.start) {
    if (start_ == 0) FindStart();
    FindSlots();
  }

  std::optional<CallerCandidate> Rank(uint64_t slot) const;

 private:
  void FindStart();
  void FindSlots();
  bool Calls(const CallInstruction& call) const;
  CallerRank RankCall(const CallInstruction& call, bool fits) const;
  std::optional<uint64_t> FramePointerBelow(uint64_t slot) const;

  const SearchedFunction function_;
  SearchedMemory* memory_;
  uint64_t start_;
  std::vector<uint64_t> slots_;  // of the return address, by the prologue
};

void CallerSearch::FindStart() {
  uint8_t code[kMaxBytesBack];
  if (function_.address < sizeof(code)) return;
  const uint64_t begin = function_.address - sizeof(code);
  if (!memory_->IsCode(begin) || !memory_->ReadCode(begin, code, sizeof(code))) return;
  const size_t bytes = BytesSincePrologue(code, sizeof(code), function_.address);
  if (bytes > 0) start_ = function_.address - bytes;
}

void CallerSearch::FindSlots() {
  if (start_ == 0 || function_.address <= start_) return;
  uint8_t code[kPrologueBytes];
  const size_t size = std::min<uint64_t>(sizeof(code), function_.address - start_);
  if (!memory_->ReadCode(start_, code, size)) return;
  slots_ = FramePointerDistances(code, size);
  for (uint64_t& slot : slots_) slot += function_.stack_pointer + kWordBytes;
}

bool CallerSearch::Calls(const CallInstruction& call) const {
  if (call.kind != CallTarget::kDirect) return false;
  if (start_ != 0) return call.target == start_;
  if (call.target > function_.address) return false;
  uint8_t code[kMaxBytesBack];
  const uint64_t size = function_.address - call.target;
  return size <= sizeof(code) && memory_->ReadCode(call.target, code, size) &&
         !HasFilling(code, size);
}

std::optional<uint64_t> CallerSearch::FramePointerBelow(uint64_t slot) const {
  uint64_t above = 0;
  uint64_t caller = 0;
  if (!memory_->ReadStackWord(slot - kWordBytes, &above) || above <= slot ||
      above % kWordBytes != 0 || !memory_->ReadStackWord(above + kWordBytes, &caller) ||
      !memory_->IsCode(caller)) {
    return std::nullopt;
  }
  return above;
}

CallerRank CallerSearch::RankCall(const CallInstruction& call, bool fits) const {
  if (Calls(call)) return fits ? CallerRank::kCallsItAndFits : CallerRank::kCallsIt;
  if (fits) return CallerRank::kFitsFrame;
  return IsByPointer(call, memory_) ? CallerRank::kMayCallIt : CallerRank::kCallsOther;
}

std::optional<CallerCandidate> CallerSearch::Rank(uint64_t slot) const {
  uint64_t word = 0;
  if (!memory_->ReadStackWord(slot, &word) || !memory_->IsCode(word)) return std::nullopt;
  const std::optional<uint64_t> frame_pointer = FramePointerBelow(slot);
  // Generated code is in no file: only a frame pointer distinguishes its address from other data.
  const CallInstruction generated = {
      frame_pointer.has_value() ? CallTarget::kIndirect : CallTarget::kNone, 0};
  const CallInstruction call = ReadCall(word, memory_).value_or(generated);
  if (call.kind == CallTarget::kNone) return std::nullopt;
  const bool fits = std::find(slots_.begin(), slots_.end(), slot) != slots_.end();
  return CallerCandidate{slot, word, RankCall(call, fits), frame_pointer};
}

}  // namespace

bool CanHaveCalled(uint64_t return_address, uint64_t start, SearchedMemory* memory) {
  const std::optional<CallInstruction> call = ReadCall(return_address, memory);
  if (!call.has_value() || call->kind != CallTarget::kDirect || call->target == start) return true;
  return IsByPointer(*call, memory);
}

std::optional<CallerCandidate> RankSlot(const SearchedFunction& function, uint64_t slot,
                                        SearchedMemory* memory) {
  return CallerSearch(function, memory).Rank(slot);
}

std::vector<CallerCandidate> FindCallers(const SearchedFunction& function, uint64_t bytes,
                                         SearchedMemory* memory) {
  const CallerSearch search(function, memory);
  std::vector<CallerCandidate> found;
  uint64_t word = 0;
  for (uint64_t at = 0; at < bytes; at += kWordBytes) {
    const uint64_t slot = function.stack_pointer + at;
    if (!memory->ReadStackWord(slot, &word)) break;
    const std::optional<CallerCandidate> candidate = search.Rank(slot);
    if (candidate.has_value()) found.push_back(*candidate);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.rank > b.rank; });
  if (found.size() > kMaxCandidates) found.resize(kMaxCandidates);
  return found;
}

}  // namespace rollcall
