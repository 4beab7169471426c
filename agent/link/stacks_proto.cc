// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stacks_proto.h"

#include "absl/strings/str_cat.h"
#include "agent/segments/printable.h"
#include "base/durations.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

// Names come from untrusted processes and files; protobuf strings must be UTF-8.
std::string Text(const std::string& text) { return Printable(text.c_str(), text.size()); }

void SetBlock(const SourceBlock& block, v1::CodeBlock* out) {
  static_assert(static_cast<int>(SourceBlockKind::kCondition) == v1::CodeBlock::CONDITION);
  static_assert(static_cast<int>(SourceBlockKind::kHandler) == v1::CodeBlock::HANDLER);
  out->set_kind(static_cast<v1::CodeBlock::Kind>(block.kind));
  out->set_first(block.first);
  out->set_last(block.last);
  out->set_skips_at(block.skips_at);
  out->set_ends_at(block.ends_at);
  out->set_is_periodic(block.is_periodic);
  out->set_decides_at(block.decides_at);
}

void SetFrame(const Frame& frame, v1::Frame* out) {
  out->set_line(frame.line);
  if (frame.python) {  // Python names are already UTF-8 without control characters
    out->set_python(true);
    out->set_function(frame.function);
    out->set_file(frame.source_file);
    out->set_has_source(frame.has_source);
    for (const SourceBlock& block : frame.blocks) SetBlock(block, out->add_blocks());
    out->set_returns_at(frame.returns_at);
    return;
  }
  out->set_function(Text(frame.function));
  out->set_file(Text(frame.source_file));
  out->set_interpreter(frame.interpreter);
  out->set_module(Text(frame.module));
  out->set_address(frame.module.empty()
                       ? absl::StrCat("0x", absl::Hex(frame.address))
                       : absl::StrCat(Text(frame.module), "+0x", absl::Hex(frame.module_offset)));
}

void SetException(const PythonException& exception, v1::PythonException* out) {
  out->set_type(Text(exception.type));
  out->set_text(Text(exception.text));
  if (exception.file.empty()) return;
  out->set_at(absl::StrCat(exception.file,
                           exception.line > 0 ? absl::StrCat(":", exception.line) : "", " in ",
                           exception.function));
}

const char* PythonLockName(PythonLock lock) {
  switch (lock) {
    case PythonLock::kHolds:
      return "holds";
    case PythonLock::kWaits:
      return "waits";
    case PythonLock::kNone:
      break;
  }
  return "";
}

}  // namespace

v1::ProcessStack ToProto(const ProcessStack& stack) {
  v1::ProcessStack out;
  out.set_pid(stack.pid);
  *out.mutable_taken_at() = ToTimestamp(stack.taken_unix_ns);
  out.set_method(stack.method);
  out.set_error(Text(stack.error));
  uint64_t cpu_ns = 0;
  for (const ThreadStack& thread : stack.threads) {
    v1::ThreadStack* added = out.add_threads();
    added->set_tid(thread.tid);
    added->set_name(Text(thread.name));
    added->set_state(std::string(1, thread.state));
    added->set_wait_channel(Text(thread.wchan));
    added->set_note(Text(thread.note));
    added->set_python_lock(PythonLockName(thread.gil));
    added->set_keeps_process(thread.keeps_process);
    added->set_switches(thread.switches);
    added->set_awaited_key(Text(thread.awaited_key));
    if (!thread.exception.type.empty()) SetException(thread.exception, added->mutable_handles());
    for (const Frame& frame : thread.frames) SetFrame(frame, added->add_frames());
    cpu_ns += thread.cpu_ns;
  }
  out.set_cpu_seconds(static_cast<double>(cpu_ns) / kSecond);
  return out;
}

}  // namespace rollcall
