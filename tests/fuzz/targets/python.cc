// SPDX-License-Identifier: Apache-2.0
// The memory of a Python process that is damaged, or that its program has prepared. The input is
// the memory from address 0 on, after the minor version of the interpreter; an invalid version
// shows that the memory publishes its offsets.
#include <cstring>

#include "agent/python/interleave.h"
#include "agent/python/sampler.h"
#include "fuzz_target.h"
#include "interpose/python/python_layout.h"
#include "python_memory.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kPageBytes = 4096;

class InputMemory : public ProcessMemory {
 public:
  explicit InputMemory(std::string_view bytes) : bytes_(bytes) {
    bytes_.resize((bytes_.size() + kPageBytes - 1) / kPageBytes * kPageBytes);
  }
  bool Read(uint64_t address, void* to, size_t size) override {
    if (address > bytes_.size() || size > bytes_.size() - address) return false;
    std::memcpy(to, bytes_.data() + address, size);
    return true;
  }

 private:
  std::string bytes_;
};

std::optional<PythonLayout> FindLayout(uint8_t version, InputMemory* memory) {
  const PythonLayout* known = FindPythonLayout(version);
  if (known != nullptr) return *known;
  uint64_t words[kDebugOffsetWords];
  if (!memory->Read(kPythonRuntime, words, sizeof(words))) return std::nullopt;
  return PythonLayoutFromDebugOffsets(words);
}

RawSample MakeSample() {
  RawSample sample;
  sample.threads.resize(2);
  sample.threads[0].is_main = true;
  sample.threads[0].own_tid = sample.threads[0].tid = kPythonThread;
  sample.threads[1].stack_base = kPythonThread;
#if defined(__x86_64__)
  sample.threads[1].registers.fs_base = kPythonThread;
#endif
  return sample;
}

void Show(const RawSample& sample) {
  Frame evaluator;
  evaluator.function = "_PyEval_EvalFrameDefault";
  evaluator.module = sample.python.module;
  for (const RawThread& thread : sample.threads) {
    std::string note;
    const auto frames = InterleavePython({evaluator, evaluator}, thread, sample.python, &note);
    Promise(frames.size() <= thread.python_frames.size() + 2, "every frame is shown once");
  }
}

void Run(Input input) {
  const auto version = input.Take<uint8_t>();
  InputMemory memory(input.TakeRest());
  const auto layout = FindLayout(version, &memory);
  if (!layout.has_value()) return;
  PythonInterpreter interpreter;
  interpreter.layout = *layout;
  interpreter.runtime = kPythonRuntime;
  interpreter.module = "/usr/bin/python3";
  PythonSampler python(interpreter, &memory);
  python.ListThreads();
  RawSample sample = MakeSample();
  for (RawThread& thread : sample.threads) {
    python.ReadFrames(&thread);
    thread.python_frames = python.frames();
  }
  python.ReadCode(&sample);
  Show(sample);
}

const Registered kTarget({"python", 16384, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
