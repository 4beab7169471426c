// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_walk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/stacks/signal_context.h"
#include "agent/stacks/word.h"

namespace rollcall {
namespace {

// How much of the stack the search for the caller of one frame reads.
constexpr uint64_t kSearchedBytes = 128 << 10;

constexpr const char* kByFramePointer =
    "some frames were found by frame pointers, their callees may be missing";
constexpr const char* kBySearch =
    "some frames were found by searching the stack, so frames may be missing or wrong";

}  // namespace

// libunwind looks up the address that it starts with. After a call that never returns, the return
// address can lie in the next function, so the walk starts at the call.
bool StackWalk::StartAtCaller(uint64_t return_address, uint64_t sp, std::optional<uint64_t> fp) {
  source_.registers.SetFrame(return_address - 1, sp, fp);
  at_call_ = true;
  return Start();
}

uint64_t StackWalk::Register(int number) {
  unw_word_t value = 0;
  return unw_get_reg(&cursor_, number, &value) == 0 ? value : 0;
}

// Returns nullopt if its value is not known.
std::optional<uint64_t> StackWalk::FramePointer() {
  unw_word_t value = 0;
  if (unw_get_reg(&cursor_, kFramePointerRegister, &value) != 0) return std::nullopt;
  return value;
}

uint64_t StackWalk::InstructionAddress() {
  return Register(interrupted_ ? kInstructionRegister : UNW_REG_IP) + (at_call_ ? 1 : 0);
}

// Returns 0 if it is unknown; for a part that the compiler split off, the start of the part.
uint64_t StackWalk::FunctionStart() {
  unw_proc_info_t info = {};
  return unw_get_proc_info(&cursor_, &info) == 0 ? info.start_ip : 0;
}

// False at the end: the outermost frame has return address 0.
bool StackWalk::AddFrame() {
  interrupted_ = stack_.frames.empty() || in_signal_frame_;
  const uint64_t ip = InstructionAddress();
  if (ip == 0 && !interrupted_) return false;
  // A signal interrupts any instruction: neither its trampoline nor the frame after it is a call.
  in_signal_frame_ = source_.IsSignalTrampoline(ip);
  stack_.frames.push_back(
      {ip, !interrupted_ && !in_signal_frame_, in_signal_frame_, Register(UNW_REG_SP)});
  return true;
}

bool StackWalk::Step() {
  const uint64_t ip = InstructionAddress();
  const uint64_t sp = Register(UNW_REG_SP);
  if (!source_.IsCode(ip)) return StepFromNoCode();
  const uint64_t start = is_trial_ && !interrupted_ && !in_signal_frame_ ? FunctionStart() : 0;
  source_.lacks = {};
  const int result = unw_step(&cursor_);
  lacked_ = source_.lacks;
  // libunwind takes address 0 for the end, but a signal may have interrupted the thread there.
  if (result == 0) return in_signal_frame_;
  if (result < 0) {
    if (StepOtherwise()) return true;
    if (!is_outermost_) stack_.note = ReasonToStop(result);
    return false;
  }
  at_call_ = false;
  if (start != 0 && !CanHaveCalled(Register(UNW_REG_IP), start, &source_)) ++contradictions_;
  if (InstructionAddress() == ip && Register(UNW_REG_SP) == sp) {
    stack_.note = "the stack goes in circles";
    return false;
  }
  return true;
}

// Steps where libunwind cannot. Sets is_outermost_ if the frame has no caller.
bool StackWalk::StepOtherwise() {
  if (lacked_.frame_pointer && !lacked_.unwind_information) {
    return StepBySearch(kSearchedBytes, CallerRank::kCallsOther, true);
  }
  if (!lacked_.unwind_information) return false;
  if (IsStartOfStack()) {
    if (StepFromStart() || StepByDebugFrame() || StepByFramePointer()) return true;
    is_outermost_ = true;
    return false;
  }
  misleading_rules_ = false;
  if (StepBySignalFrame() || StepByDebugFrame()) return true;
  if (is_outermost_) return false;
  const CallerRank least = misleading_rules_ ? CallerRank::kFitsFrame : CallerRank::kCallsOther;
  return StepByFramePointerOrCode() || StepBySearch(kSearchedBytes, least, false);
}

// Returns whether no code called the function of the last frame: a program stored its address as a
// return address, for example makecontext().
bool StackWalk::IsStartOfStack() {
  const UnwoundFrame& frame = stack_.frames.back();
  return frame.is_return_address && !source_.IsReturnAddress(frame.address);
}

// Steps out of a call through an invalid pointer: no code ran there, so the return address is on
// top. An outer frame without code comes from a wrong guess of the search, or a damaged stack.
bool StackWalk::StepFromNoCode() {
#if defined(__x86_64__)
  const uint64_t sp = Register(UNW_REG_SP);
  uint64_t caller = 0;
  if (interrupted_ && source_.ReadWord(sp, &caller) && source_.IsCode(caller)) {
    stack_.note = "a frame has no code: a call through an invalid pointer";
    source_.registers.Move(caller - 1, sp + kWordBytes, FramePointer());
    at_call_ = true;
    return Start();
  }
#endif
  stack_.note = "a frame has no code";
  return false;
}

// Steps out of a function that no code called. The address is the function's first, so its rules
// are found there. They may claim a caller that does not exist.
bool StackWalk::StepFromStart() {
  const UnwoundFrame& frame = stack_.frames.back();
  source_.registers.SetFrame(frame.address, frame.stack_pointer, FramePointer());
  at_call_ = false;
  const int result = Start() ? unw_step(&cursor_) : -UNW_EUNSPEC;
  return result > 0 && source_.IsReturnAddress(Register(UNW_REG_IP));
}

// Steps out of a signal trampoline that has no unwind information.
bool StackWalk::StepBySignalFrame() {
  if (!in_signal_frame_) return false;
  ThreadRegisters registers = {};
  const auto read = [this](uint64_t address, uint64_t* word) {
    return source_.ReadWord(address, word);
  };
  if (!ReadInterruptedRegisters(Register(UNW_REG_SP), read, &registers)) return false;
  source_.registers.SetAll(registers);
  at_call_ = false;
  return Start();
}

bool StackWalk::StepByDebugFrame() {
  const UnwoundFrame& at = stack_.frames.back();
  const LocatedAddress located = context_.modules->Locate(at.address);
  if (located.file == nullptr || !located.file_address.has_value()) return false;
  const FrameRegisters callee = {at.address, Register(UNW_REG_SP), FramePointer().value_or(0)};
  const auto read = [this](uint64_t address, uint64_t* word) {
    return source_.ReadWord(address, word);
  };
  const auto caller = context_.debug_frames->Caller(
      located.file, *located.file_address - (at.is_return_address ? 1 : 0), callee, read);
  if (!caller.has_value()) return false;
  is_outermost_ = caller->instruction == 0;
  misleading_rules_ = caller->stack <= callee.stack || !source_.IsCode(caller->instruction);
  if (misleading_rules_) return false;
  return StartAtCaller(caller->instruction, caller->stack,
                       caller->frame != 0 ? std::optional(caller->frame) : std::nullopt);
}

bool StackWalk::StepByFramePointer() {
  const uint64_t sp = Register(UNW_REG_SP);
  const uint64_t fp = FramePointer().value_or(0);
  uint64_t caller_fp = 0;
  uint64_t caller = 0;
  if (fp < sp || fp % kWordBytes != 0 || !source_.ReadStackWord(fp, &caller_fp) ||
      !source_.ReadStackWord(fp + kWordBytes, &caller)) {
    return false;
  }
  // The outermost frame pointer is 0. Its function may be one that no code called.
  const bool is_last = caller_fp == 0 && source_.IsCode(caller);
  if (!is_last && !source_.IsReturnAddress(caller)) return false;
  followed_frame_pointer_ = true;
  return StartAtCaller(caller, fp + 2 * kWordBytes, caller_fp);
}

std::string StackWalk::ReasonToStop(int error) {
  if (context_.budget->is_spent()) return "unwinding takes too long";
  if (lacked_.stack) return "the copied part of the stack ends here";
  if (lacked_.unwind_information) return "no unwind information for the last frame";
  if (lacked_.frame_pointer) return "the frame pointer of the last frame is unknown";
  return absl::StrCat("the unwinder stopped: ", unw_strerror(error));
}

void StackWalk::AddNote(const char* note) {
  absl::StrAppend(&stack_.note, stack_.note.empty() ? "" : "; ", note);
}

UnwoundStack StackWalk::Run(size_t max_frames) {
  if (!Start()) {
    stack_.note = "the unwinder could not start";
    return std::move(stack_);
  }
  while (AddFrame()) {
    if (stack_.frames.size() >= max_frames) {
      stack_.note = absl::StrCat("more than ", max_frames, " frames; the outer ones are left out");
      break;
    }
    if (!Step()) break;
  }
  if (followed_frame_pointer_) AddNote(kByFramePointer);
  if (trials_.has_guessed()) AddNote(kBySearch);
  return std::move(stack_);
}

}  // namespace rollcall
