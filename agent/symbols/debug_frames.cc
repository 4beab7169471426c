// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/debug_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdlib>

#include "agent/symbols/dwfl_module.h"

namespace rollcall {
namespace {

// DWARF register numbers of the ABI.
#if defined(__x86_64__)
constexpr int kFrameNumber = 6;
constexpr int kStackNumber = 7;
#else
constexpr int kFrameNumber = 29;
constexpr int kStackNumber = 31;
#endif

class Rules {
 public:
  Rules(Dwarf_CFI* cfi, Dwarf_Addr address) {
    if (cfi == nullptr || dwarf_cfi_addrframe(cfi, address, &frame_) != 0) frame_ = nullptr;
    if (frame_ == nullptr) return;
    bool signal = false;
    return_number_ = dwarf_frame_info(frame_, nullptr, nullptr, &signal);
  }
  ~Rules() { std::free(frame_); }
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;

  bool valid() const { return frame_ != nullptr && return_number_ >= 0; }
  int return_number() const { return return_number_; }

  // Returns the canonical frame address if its rule is a register and an offset.
  std::optional<uint64_t> FrameAddress(const FrameRegisters& callee) const {
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_cfa(frame_, &ops, &count) != 0 || count != 1) return std::nullopt;
    uint64_t number = ops[0].number;
    uint64_t offset = ops[0].number2;
    if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
      number = ops[0].atom - DW_OP_breg0;
      offset = ops[0].number;
    } else if (ops[0].atom != DW_OP_bregx) {
      return std::nullopt;
    }
    if (number == kStackNumber) return callee.stack + offset;
    if (number == kFrameNumber && callee.frame != 0) return callee.frame + offset;
    return std::nullopt;
  }

  // Whether the function is the outermost one, such as _start.
  bool HasNoCaller() const {
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    return dwarf_frame_register(frame_, return_number_, memory, &ops, &count) == 0 && count == 0 &&
           ops != nullptr;
  }

  // Returns the caller's value if it is unchanged or saved at an offset from the frame address.
  std::optional<uint64_t> Register(int number, uint64_t frame_address, uint64_t unchanged,
                                   const DebugFrames::ReadWord& read) const {
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_register(frame_, number, memory, &ops, &count) != 0) return std::nullopt;
    if (count == 0 && ops == nullptr) return unchanged;
    if (count == 0 || count > 2 || ops[0].atom != DW_OP_call_frame_cfa) return std::nullopt;
    if (count == 2 && ops[1].atom != DW_OP_plus_uconst) return std::nullopt;
    uint64_t value = 0;
    if (!read(frame_address + (count == 2 ? ops[1].number : 0), &value)) return std::nullopt;
    return value;
  }

 private:
  Dwarf_Frame* frame_ = nullptr;
  int return_number_ = -1;
};

}  // namespace

DebugFrames::DebugFrames() = default;
DebugFrames::~DebugFrames() = default;

std::optional<FrameRegisters> DebugFrames::Step(Dwarf_CFI_s* cfi, uint64_t address,
                                                const FrameRegisters& callee,
                                                const ReadWord& read) {
  const Rules rules(cfi, address);
  if (!rules.valid()) return std::nullopt;
  if (rules.HasNoCaller()) return FrameRegisters();
  const std::optional<uint64_t> frame_address = rules.FrameAddress(callee);
  if (!frame_address.has_value()) return std::nullopt;
  const auto instruction = rules.Register(rules.return_number(), *frame_address, 0, read);
  if (!instruction.has_value()) return std::nullopt;
  if (*instruction == 0) return FrameRegisters();
  const auto frame = rules.Register(kFrameNumber, *frame_address, callee.frame, read);
  return FrameRegisters{*instruction, *frame_address, frame.value_or(0)};
}

std::optional<FrameRegisters> DebugFrames::Caller(const std::shared_ptr<ElfFile>& file,
                                                  uint64_t address, const FrameRegisters& callee,
                                                  const ReadWord& read) {
  std::unique_ptr<DwflModule>& module = modules_[file.get()];
  SetFileInUse(file->id());
  if (module == nullptr) module = std::make_unique<DwflModule>(file);
  Dwarf_Addr in_table = 0;
  Dwarf_CFI* const debug_frame = module->DebugFrameTable(address, &in_table);
  const auto caller = Step(debug_frame, in_table, callee, read);
  if (caller.has_value() || file->unwind_table().has_value()) return caller;
  Dwarf_CFI* const exceptions = module->ExceptionTable(address, &in_table);
  return Step(exceptions, in_table, callee, read);
}

}  // namespace rollcall
