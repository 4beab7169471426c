// SPDX-License-Identifier: Apache-2.0
// ELF files that a process has mapped, with their DWARF: symbols, lines, unwind tables. An input
// has two addresses to look up, and then the file.
#include "agent/symbols/debug_frames.h"
#include "agent/symbols/elf_file.h"
#include "agent/symbols/elf_symbols.h"
#include "agent/symbols/symbolizer.h"
#include "fuzz_target.h"
#include "memory_file.h"

namespace rollcall {
namespace fuzz {
namespace {

void LookUp(const std::shared_ptr<ElfFile>& file, uint64_t address, Symbolizer* symbolizer) {
  Promise(!symbolizer->Resolve(file, address).empty(), "an address has an answer");
  DebugFrames frames;
  const FrameRegisters callee = {address, 0x7000, 0x7100};
  (void)frames.Caller(file, address, callee, [](uint64_t from, uint64_t* word) {
    *word = from + 1;
    return from % 16 == 0;
  });
}

void Run(Input input) {
  const auto first = input.Take<uint32_t>();
  const auto second = input.Take<uint64_t>();
  MemoryFile memory;
  const std::string_view bytes = input.TakeRest();
  memory.Write(0, bytes, bytes.size());
  (void)FindElfSymbols(memory.fd(), {"_PyRuntime", "Py_Version", "one_function"});
  const auto file = ElfFile::Open(UniqueFd(memory.Duplicate()), "libfuzz.so");
  if (!file.ok()) return;
  Promise((*file)->build_id().size() <= 128, "a build id is short");
  (void)(*file)->AddressOfOffset(first);
  Symbolizer symbolizer;
  LookUp(*file, first, &symbolizer);
  LookUp(*file, second, &symbolizer);
}

const Registered kTarget({"elf", 32768, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
