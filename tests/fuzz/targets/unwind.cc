// SPDX-License-Identifier: Apache-2.0
// A copied stack, and the ELF file with the tables to unwind it. An input has three registers, the
// stack, and the file; unwind_places.h has their addresses.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/link/stacks_proto.h"
#include "agent/stacks/stack_reader.h"
#include "fuzz_target.h"
#include "memory_file.h"
#include "unwind_places.h"

namespace rollcall {
namespace fuzz {
namespace {

ProcMap CodeMap(const MemoryFile& file, size_t size) {
  ProcMap map;
  map.start = kUnwindCode;
  map.end = kUnwindCode + std::max<size_t>(size, 1);
  map.readable = map.executable = true;
  map.path = absl::StrCat("/proc/self/fd/", file.fd());
  return map;
}

ProcMap StackMap() {
  ProcMap map;
  map.start = kUnwindStack;
  map.end = kUnwindStack + (1 << 20);
  map.readable = map.writable = true;
  map.path = "[stack]";
  return map;
}

RawThread ReadThread(Input* input) {
  RawThread thread;
  thread.tid = 1;
  thread.name = "main";
  thread.how = HowTaken::kInterrupted;
  const auto instruction = input->Take<uint64_t>();
  const auto offset = input->Take<uint16_t>();
  SetInstructionAndStack(instruction, kUnwindStack + offset, &thread.registers);
  const auto frame = input->Take<uint64_t>();
#if defined(__x86_64__)
  thread.registers.rbp = frame;
#else
  thread.registers.regs[29] = frame;
#endif
  const std::string_view stack = input->TakePart();
  thread.stack_base = kUnwindStack;
  thread.stack.assign(stack.begin(), stack.end());
  return thread;
}

void Run(Input input) {
  RawSample sample;
  sample.pid = getpid();
  sample.method = "ptrace";
  sample.threads.push_back(ReadThread(&input));
  const std::string_view bytes = input.TakeRest();
  MemoryFile file;
  file.Write(0, bytes, bytes.size());
  sample.maps = {CodeMap(file, bytes.size()), StackMap()};
  TakeLimits limits;
  limits.max_frames = 512;
  StackReader reader;
  const ProcessStack stack = reader.Unwind(sample, limits);
  Promise(stack.threads.size() == 1, "a thread has a stack");
  Promise(stack.threads[0].frames.size() <= limits.kept_frames + 1, "a stack has a limit");
  (void)FormatProcessStack(stack);
  (void)ToProto(stack);
}

const Registered kTarget({"unwind", 32768, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
