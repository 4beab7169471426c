// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_unwinder.h"

#include <libunwind.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/stacks/unwind_registers.h"

// libunwind exports it for remote unwinders (perf uses it), but declares it in no header.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*,
                                                  unw_proc_info_t*, int, void*);

namespace rollcall {
namespace {

constexpr size_t kWordBytes = sizeof(unw_word_t);
// One entry of the binary search table of .eh_frame_hdr. libunwind counts the table in words.
constexpr size_t kTableEntryBytes = 8;

#if defined(__x86_64__)
// mov $15, %rax; syscall
constexpr uint8_t kSigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
#else
// mov x8, #139; svc #0
constexpr uint8_t kSigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#endif

// The facts about one thread that libunwind's callbacks read.
class UnwindSource {
 public:
  UnwindSource(const RawThread& thread, SampleModules* modules)
      : registers(thread), thread_(thread), modules_(modules) {}

  bool ReadWord(uint64_t address, unw_word_t* word);
  int FindProcInfo(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int details);
  bool IsCode(uint64_t address);
  bool IsSignalTrampoline(uint64_t address);

  UnwindRegisters registers;
  bool no_information = false;  // of the last step: its function has no unwind information
  bool left_the_copy = false;   // of the last step: it needed more stack than was copied

 private:
  bool ReadStack(uint64_t address, unw_word_t* word);
  bool ReadFile(uint64_t address, unw_word_t* word);

  const RawThread& thread_;
  SampleModules* modules_;
};

bool UnwindSource::ReadStack(uint64_t address, unw_word_t* word) {
  const uint64_t size = thread_.stack.size();
  if (size < kWordBytes || address < thread_.stack_base ||
      address - thread_.stack_base > size - kWordBytes) {
    return false;
  }
  std::memcpy(word, &thread_.stack[address - thread_.stack_base], kWordBytes);
  return true;
}

bool UnwindSource::ReadFile(uint64_t address, unw_word_t* word) {
  const LocatedAddress located = modules_->Locate(address);
  if (located.file == nullptr) {
    left_the_copy |=
        located.map != nullptr && address >= thread_.stack_base && located.map->writable;
    return false;
  }
  return located.file->ReadOffset(located.file_offset, word, kWordBytes);
}

bool UnwindSource::ReadWord(uint64_t address, unw_word_t* word) {
  return ReadStack(address, word) || ReadFile(address, word);
}

bool UnwindSource::IsCode(uint64_t address) {
  const LocatedAddress located = modules_->Locate(address);
  return located.map != nullptr && located.map->executable;
}

// Recognises the instructions of a call to rt_sigreturn. libunwind's answer differs by release.
bool UnwindSource::IsSignalTrampoline(uint64_t address) {
  unw_word_t code[2];
  return ReadFile(address, &code[0]) && ReadFile(address + kWordBytes, &code[1]) &&
         std::memcmp(code, kSigreturn, sizeof(kSigreturn)) == 0;
}

int UnwindSource::FindProcInfo(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info,
                               int details) {
  const LocatedAddress located = modules_->Locate(ip);
  int result = -UNW_ENOINFO;
  if (located.file_address.has_value() && located.file->unwind_table().has_value()) {
    const UnwindTable& table = *located.file->unwind_table();
    const uint64_t bias = ip - *located.file_address;
    unw_dyn_info_t tables;
    std::memset(&tables, 0, sizeof(tables));
    tables.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    tables.start_ip = located.map->start;
    tables.end_ip = located.map->end;
    tables.u.rti.segbase = table.header_address + bias;
    tables.u.rti.table_data = table.entries_address + bias;
    tables.u.rti.table_len = table.entry_count * kTableEntryBytes / kWordBytes;
    result = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &tables, info, details, this);
  }
  no_information = result == -UNW_ENOINFO;
  // With ENOINFO libunwind would guess silently. StepByFramePointer() checks its guess and reports
  // it.
  return no_information ? -UNW_ESTOPUNWIND : result;
}

UnwindSource* Source(void* argument) { return static_cast<UnwindSource*>(argument); }

int FindProcInfoCallback(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int details,
                         void* argument) {
  return Source(argument)->FindProcInfo(space, ip, info, details);
}

void PutUnwindInfoCallback(unw_addr_space_t, unw_proc_info_t*, void*) {}

int DynInfoListCallback(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int AccessMemCallback(unw_addr_space_t, unw_word_t address, unw_word_t* word, int write,
                      void* argument) {
  if (write != 0) return -UNW_EINVAL;
  return Source(argument)->ReadWord(address, word) ? 0 : -UNW_EINVAL;
}

int AccessRegCallback(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write,
                      void* argument) {
  if (write != 0) return -UNW_EREADONLYREG;
  return Source(argument)->registers.Get(number, value) ? 0 : -UNW_EBADREG;
}

int AccessFpRegCallback(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) {
  return -UNW_EBADREG;
}

int ResumeCallback(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }

int ProcNameCallback(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) {
  return -UNW_ENOINFO;
}

unw_addr_space_t NewAddressSpace() {
  unw_accessors_t accessors;
  std::memset(&accessors, 0, sizeof(accessors));
  accessors.find_proc_info = FindProcInfoCallback;
  accessors.put_unwind_info = PutUnwindInfoCallback;
  accessors.get_dyn_info_list_addr = DynInfoListCallback;
  accessors.access_mem = AccessMemCallback;
  accessors.access_reg = AccessRegCallback;
  accessors.access_fpreg = AccessFpRegCallback;
  accessors.resume = ResumeCallback;
  accessors.get_proc_name = ProcNameCallback;
  return unw_create_addr_space(&accessors, 0);
}

// The walk over one thread's stack.
class Walk {
 public:
  Walk(unw_addr_space_t space, const RawThread& thread, SampleModules* modules,
       DebugFrames* debug_frames)
      : space_(space), modules_(modules), debug_frames_(debug_frames), source_(thread, modules) {}

  UnwoundStack Run(size_t max_frames);

 private:
  bool Start() { return unw_init_remote(&cursor_, space_, &source_) == 0; }
  uint64_t Register(int number);
  uint64_t InstructionAddress();
  bool AddFrame();
  bool Step();
  bool StepFromInvalidCall();
  bool StepByDebugFrame();
  bool StepByFramePointer();
  std::string ReasonToStop(int error);

  unw_addr_space_t space_;
  SampleModules* modules_;
  DebugFrames* debug_frames_;
  UnwindSource source_;
  unw_cursor_t cursor_;
  UnwoundStack stack_;
  bool in_signal_frame_ = false;  // the last frame is a signal trampoline
  bool interrupted_ = false;      // the last frame was interrupted, so it is no call
  bool guessed_ = false;
};

uint64_t Walk::Register(int number) {
  unw_word_t value = 0;
  return unw_get_reg(&cursor_, number, &value) == 0 ? value : 0;
}

uint64_t Walk::InstructionAddress() {
  return Register(interrupted_ ? kInstructionRegister : UNW_REG_IP);
}

// False at the end: the outermost frame has return address 0.
bool Walk::AddFrame() {
  interrupted_ = stack_.frames.empty() || in_signal_frame_;
  const uint64_t ip = InstructionAddress();
  if (ip == 0 && !interrupted_) return false;
  // A signal interrupts any instruction: neither its trampoline nor the frame after it is a call.
  in_signal_frame_ = source_.IsSignalTrampoline(ip);
  stack_.frames.push_back(
      {ip, !interrupted_ && !in_signal_frame_, in_signal_frame_, Register(UNW_REG_SP)});
  return true;
}

bool Walk::Step() {
  const uint64_t ip = InstructionAddress();
  const uint64_t sp = Register(UNW_REG_SP);
  source_.no_information = false;
  source_.left_the_copy = false;
  if (interrupted_ && !source_.IsCode(ip)) return StepFromInvalidCall();
  const int result = unw_step(&cursor_);
  // libunwind takes address 0 for the end, but a signal may have interrupted the thread there.
  if (result == 0) return in_signal_frame_;
  if (result < 0 && source_.no_information) return StepByDebugFrame() || StepByFramePointer();
  if (result < 0) {
    stack_.note = ReasonToStop(result);
    return false;
  }
  if (InstructionAddress() == ip && Register(UNW_REG_SP) == sp) {
    stack_.note = "the stack goes in circles";
    return false;
  }
  return true;
}

// Steps out of a call through an invalid pointer: no code ran there, so the return address is on
// top.
bool Walk::StepFromInvalidCall() {
#if defined(__x86_64__)
  const uint64_t sp = Register(UNW_REG_SP);
  unw_word_t caller = 0;
  if (source_.ReadWord(sp, &caller) && source_.IsCode(caller)) {
    stack_.note = "a frame has no code: a call through an invalid pointer";
    source_.registers.Set(caller, sp + kWordBytes, Register(kFramePointerRegister));
    return Start();
  }
#endif
  stack_.note = "a frame has no code";
  return false;
}

bool Walk::StepByDebugFrame() {
  const UnwoundFrame& at = stack_.frames.back();
  const LocatedAddress located = modules_->Locate(at.address);
  if (located.file == nullptr || !located.file_address.has_value()) return false;
  const FrameRegisters callee = {at.address, Register(UNW_REG_SP), Register(kFramePointerRegister)};
  const auto caller =
      debug_frames_->Caller(located.file, *located.file_address - (at.is_return_address ? 1 : 0),
                            callee, [this](uint64_t address, uint64_t* word) {
                              unw_word_t value = 0;
                              if (!source_.ReadWord(address, &value)) return false;
                              *word = value;
                              return true;
                            });
  if (!caller.has_value() || caller->stack <= callee.stack ||
      !source_.IsCode(caller->instruction)) {
    return false;
  }
  source_.registers.Forget();
  source_.registers.Set(caller->instruction, caller->stack, caller->frame);
  return Start();
}

bool Walk::StepByFramePointer() {
  const uint64_t sp = Register(UNW_REG_SP);
  const uint64_t fp = Register(kFramePointerRegister);
  unw_word_t caller_fp = 0;
  unw_word_t caller = 0;
  if (fp < sp || fp % kWordBytes != 0 || !source_.ReadWord(fp, &caller_fp) ||
      !source_.ReadWord(fp + kWordBytes, &caller) || !source_.IsCode(caller)) {
    stack_.note = ReasonToStop(-UNW_ENOINFO);
    return false;
  }
  guessed_ = true;
  source_.registers.Forget();
  source_.registers.Set(caller, fp + 2 * kWordBytes, caller_fp);
  return Start();
}

std::string Walk::ReasonToStop(int error) {
  if (source_.left_the_copy) return "the copied part of the stack ends here";
  if (source_.no_information) return "no unwind information for the last frame";
  return absl::StrCat("the unwinder stopped: ", unw_strerror(error));
}

UnwoundStack Walk::Run(size_t max_frames) {
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
  if (guessed_) {
    absl::StrAppend(&stack_.note, stack_.note.empty() ? "" : "; ",
                    "some frames were found by frame pointers, their callees may be missing");
  }
  return std::move(stack_);
}

}  // namespace

StackUnwinder::StackUnwinder(const RawSample& sample, SampleModules* modules)
    : sample_(sample), modules_(modules), address_space_(NewAddressSpace()) {
  if (address_space_ != nullptr) {
    unw_set_caching_policy(static_cast<unw_addr_space_t>(address_space_), UNW_CACHE_GLOBAL);
  }
}

StackUnwinder::~StackUnwinder() {
  if (address_space_ != nullptr) {
    unw_destroy_addr_space(static_cast<unw_addr_space_t>(address_space_));
  }
}

UnwoundStack StackUnwinder::Unwind(const RawThread& thread, size_t max_frames) {
  if (!thread.taken() || address_space_ == nullptr) return {};
  return Walk(static_cast<unw_addr_space_t>(address_space_), thread, modules_, &debug_frames_)
      .Run(max_frames);
}

}  // namespace rollcall
