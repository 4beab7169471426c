// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_work.h"

#include "agent/stacks/archive.h"

namespace rollcall {
namespace {

// Rises when the fields below change. The sizes find most changes that somebody forgot.
constexpr uint64_t kFormat = 5;
constexpr uint64_t kMark = (kFormat << 48) + (sizeof(RawSample) << 32) + (sizeof(RawThread) << 16) +
                           sizeof(PythonCode) + sizeof(ProcMap);

}  // namespace

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProcMap>& map) {
  archive(map.start);
  archive(map.end);
  archive(map.offset);
  archive(map.device);
  archive(map.inode);
  archive(map.readable);
  archive(map.writable);
  archive(map.executable);
  archive(map.deleted);
  archive(map.path);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, PythonException>& exception) {
  archive(exception.type);
  archive(exception.text);
  archive(exception.function);
  archive(exception.file);
  archive(exception.line);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, RawThread>& thread) {
  archive(thread.tid);
  archive(thread.own_tid);
  archive(thread.is_main);
  archive(thread.name);
  archive(thread.state);
  archive(thread.wchan);
  archive(thread.cpu_ns);
  archive(thread.signals_blocked);
  archive(thread.signals_caught);
  archive(thread.switches);
  archive(thread.sample_switches);
  archive(thread.how);
  archive(thread.error);
  archive(thread.registers);
  archive(thread.stack_base);
  archive(thread.stack);
  archive(thread.interrupted_base);
  archive(thread.interrupted_stack);
  archive(thread.stopped_ns);
  archive(thread.is_python);
  archive(thread.holds_gil);
  archive(thread.waits_gil);
  archive(thread.python_first_local);
  archive(thread.python_state);
  archive(thread.python_name);
  archive(thread.keeps_process);
  Fields(archive, thread.exception);
  archive(thread.python_frames);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, PythonCode>& code) {
  archive(code.name);
  archive(code.file);
  archive(code.first_line);
  archive(code.instructions);
  archive(code.lines);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, RawSample>& sample) {
  archive(sample.pid);
  archive(sample.method);
  archive(sample.refused);
  archive(sample.maps);
  archive(sample.threads);
  archive(sample.python.module);
  archive(sample.python.minor);
  archive(sample.python.code);
  archive(sample.python.note);
  archive(sample.taken_unix_ns);
  archive(sample.duration_ns);
  archive(sample.copying_ns);
  archive(sample.error);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, StackWork>& work) {
  archive(work.kind);
  archive(work.proc_root);
  archive(work.limits);
  Fields(archive, work.sample);
  Fields(archive, work.file);
  archive(work.names);
  archive(work.silent_devices);
  archive(work.costly_files);
}

// The child answers with it: a byte that is not a bool must not become one.
template <>
inline constexpr bool IsPlain<SourceBlock> = false;

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, SourceBlock>& block) {
  archive(block.kind);
  archive(block.first);
  archive(block.last);
  archive(block.skips_at);
  archive(block.ends_at);
  archive(block.decides_at);
  archive(block.is_periodic);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, Frame>& frame) {
  archive(frame.function);
  archive(frame.module);
  archive(frame.module_offset);
  archive(frame.build_id);
  archive(frame.source_file);
  archive(frame.line);
  archive(frame.address);
  archive(frame.stack_pointer);
  archive(frame.inlined);
  archive(frame.python);
  archive(frame.interpreter);
  archive(frame.has_source);
  archive(frame.blocks);
  archive(frame.returns_at);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, ThreadStack>& thread) {
  archive(thread.tid);
  archive(thread.name);
  archive(thread.state);
  archive(thread.wchan);
  archive(thread.cpu_ns);
  archive(thread.switches);
  archive(thread.sample_switches);
  archive(thread.gil);
  archive(thread.keeps_process);
  Fields(archive, thread.exception);
  archive(thread.awaited_key);
  archive(thread.frames);
  archive(thread.note);
}

template <typename Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProcessStack>& stack) {
  archive(stack.pid);
  archive(stack.threads);
  archive(stack.method);
  archive(stack.taken_unix_ns);
  archive(stack.error);
}

namespace {

template <typename Value>
std::string Write(const Value& value) {
  ArchiveWriter archive;
  archive(kMark);
  if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
    archive(value);
  } else {
    Fields(archive, value);
  }
  return archive.bytes();
}

template <typename Value>
bool Read(const std::string& bytes, Value* value) {
  ArchiveReader archive(bytes);
  uint64_t mark = 0;
  archive(mark);
  if (mark != kMark) return false;
  if constexpr (std::is_same_v<Value, std::vector<uint64_t>>) {
    archive(*value);
  } else {
    Fields(archive, *value);
  }
  return archive.ok();
}

}  // namespace

std::string ToBytes(const StackWork& work) { return Write(work); }
bool FromBytes(const std::string& bytes, StackWork* work) { return Read(bytes, work); }
std::string ToBytes(const ProcessStack& stack) { return Write(stack); }
bool FromBytes(const std::string& bytes, ProcessStack* stack) { return Read(bytes, stack); }
std::string ToBytes(const std::vector<uint64_t>& distances) { return Write(distances); }
bool FromBytes(const std::string& bytes, std::vector<uint64_t>* distances) {
  return Read(bytes, distances);
}

}  // namespace rollcall
