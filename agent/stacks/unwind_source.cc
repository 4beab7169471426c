// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/unwind_source.h"

#include <algorithm>
#include <cstring>

#include "agent/stacks/call_instructions.h"
#include "agent/stacks/word.h"

// libunwind exports it for remote unwinders (perf uses it), but declares it in no header.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*,
                                                  unw_proc_info_t*, int, void*);

namespace rollcall {
namespace {

// One entry of the binary search table of .eh_frame_hdr. libunwind counts the table in words.
constexpr size_t kTableEntryBytes = 8;
// This is the budget: half a second for a hostile process of one thread, ten for one of a thousand.
constexpr size_t kWordsOfSample = 1 << 22;
constexpr size_t kWordsOfThread = 1 << 16;
// Code that is copied and scanned: so many bytes cost as much as a word that libunwind asks for.
constexpr size_t kCodeBytesOfWord = 64;

#if defined(__x86_64__)
// mov $15, %rax; syscall
constexpr uint8_t kSigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
#else
// mov x8, #139; svc #0
constexpr uint8_t kSigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#endif

uint64_t BytesAbove(const std::vector<uint8_t>& copy, uint64_t base, uint64_t address) {
  if (address < base || address - base >= copy.size()) return 0;
  return copy.size() - (address - base);
}

bool ReadCopy(const std::vector<uint8_t>& copy, uint64_t base, uint64_t address, uint64_t* word) {
  if (BytesAbove(copy, base, address) < kWordBytes) return false;
  std::memcpy(word, &copy[address - base], kWordBytes);
  return true;
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
  UnwindSource* const source = Source(argument);
  if (source->registers.Get(number, value)) return 0;
  source->lacks.frame_pointer |= number == kFramePointerRegister;
  return -UNW_EBADREG;
}

int AccessFpRegCallback(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) {
  return -UNW_EBADREG;
}

int ResumeCallback(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }

int ProcNameCallback(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) {
  return -UNW_ENOINFO;
}

}  // namespace

UnwindBudget::UnwindBudget(size_t threads) : words_(kWordsOfSample + kWordsOfThread * threads) {}

bool UnwindBudget::Spend(size_t words) {
  const bool enough = words_ >= words;
  words_ = enough ? words_ - words : 0;
  return enough;
}

bool UnwindSource::ReadStackWord(uint64_t address, uint64_t* word) {
  return ReadCopy(thread_.stack, thread_.stack_base, address, word) ||
         ReadCopy(thread_.interrupted_stack, thread_.interrupted_base, address, word);
}

uint64_t UnwindSource::StackBytesAbove(uint64_t address) const {
  return std::max(BytesAbove(thread_.stack, thread_.stack_base, address),
                  BytesAbove(thread_.interrupted_stack, thread_.interrupted_base, address));
}

bool UnwindSource::ReadFile(uint64_t address, uint64_t* word) {
  const LocatedAddress located = modules_->Locate(address);
  if (located.file == nullptr) {
    const bool is_interrupted_one =
        thread_.interrupted_base != 0 && address >= thread_.interrupted_base;
    lacks.stack |= located.map != nullptr && located.map->writable &&
                   (address >= thread_.stack_base || is_interrupted_one);
    return false;
  }
  return located.file->ReadOffset(located.file_offset, word, kWordBytes);
}

bool UnwindSource::ReadWord(uint64_t address, uint64_t* word) {
  if (!budget_->Spend(1)) return false;
  return ReadStackWord(address, word) || ReadFile(address, word);
}

bool UnwindSource::ReadCode(uint64_t address, void* to, size_t size) {
  if (!budget_->Spend(1 + size / kCodeBytesOfWord)) return false;
  const LocatedAddress located = modules_->Locate(address);
  return located.file != nullptr && located.file->ReadOffset(located.file_offset, to, size);
}

bool UnwindSource::IsCode(uint64_t address) {
  const ProcMap* map = modules_->FindMapping(address);
  return map != nullptr && map->executable;
}

// Recognises the instructions of a call to rt_sigreturn. libunwind's answer differs by release.
bool UnwindSource::IsSignalTrampoline(uint64_t address) {
  uint8_t code[sizeof(kSigreturn)];
  return ReadCode(address, code, sizeof(code)) &&
         std::memcmp(code, kSigreturn, sizeof(kSigreturn)) == 0;
}

bool UnwindSource::IsReturnAddress(uint64_t address) {
  if (!IsCode(address)) return false;
  uint8_t before[kMaxCallBytes];
  if (address < sizeof(before) || !ReadCode(address - sizeof(before), before, sizeof(before))) {
    return true;
  }
  return DecodeCall(address, before).kind != CallTarget::kNone || IsSignalTrampoline(address);
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
  lacks.unwind_information = result == -UNW_ENOINFO;
  // With ENOINFO libunwind would guess silently. StackWalk::StepByFramePointer() checks its guess
  // and reports it.
  return lacks.unwind_information ? -UNW_ESTOPUNWIND : result;
}

unw_addr_space_t NewUnwindSpace() {
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

}  // namespace rollcall
