// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "agent/stacks/stack_work.h"
#include "fuzz_input.h"
#include "fuzz_target.h"
#include "interpose/python/python_layout.h"
#include "interpose/segment_messages.h"
#include "interpose/segment_network.h"
#include "python_memory.h"
#include "seeds.h"
#include "segment_builder.h"
#include "segment_pieces.h"
#include "unwind_places.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kGap = 32;  // zeros that end a piece

// The pieces of a region that are not zero.
void AddRegion(const std::vector<char>& bytes, uint8_t region, std::string* input) {
  size_t end = bytes.size();
  for (const size_t other : kSegmentRegions) {
    if (other > kSegmentRegions[region]) end = std::min(end, other);
  }
  const std::string zeros(kGap, '\0');
  const std::string_view all(bytes.data(), end);
  size_t at = kSegmentRegions[region];
  while ((at = all.find_first_not_of('\0', at)) != std::string_view::npos) {
    const size_t piece_end = std::min(all.find(zeros, at), all.size());
    const std::string_view piece = all.substr(at, piece_end - at);
    *input += static_cast<char>(region);
    *input += Bytes(static_cast<uint16_t>(at - kSegmentRegions[region]));
    *input += Part(piece);
    at = piece_end;
  }
}

std::string ToPieces(SegmentBuilder* builder, uint8_t flags) {
  std::string input = Bytes(flags) + Bytes(uint16_t{100});
  for (uint8_t region = 0; kSegmentRegions[region] < builder->bytes().size(); ++region) {
    AddRegion(builder->bytes(), region, &input);
  }
  return input;
}

void FillHeader(SegmentBuilder* builder) {
  segment::SegmentHeader* header = builder->header();
  std::strcpy(header->host, "node-17");
  std::strcpy(header->job, "train");
  std::strcpy(header->command, "python train.py");
  std::strcpy(header->error, "ValueError: x at train.py:57");
  header->global_rank = 3;
  header->world_size = 4;
  header->last_clock.ticks = 9000;
  header->last_clock.monotonic_ns = 9000;
  header->last_clock.realtime_ns = SegmentBuilder::kBaseNs + 8000;
  header->error_ticks = 5000;
  header->annotations.step = 12;
  segment::BlockedEntry* blocked = builder->blocked(0);
  blocked->tid = 4121;
  blocked->op = static_cast<uint32_t>(Op::kAllReduce);
  blocked->comm = 0;
  blocked->since = 4000;
}

std::string TwoCommunicators(uint8_t flags, bool has_markers) {
  SegmentBuilder builder;
  FillHeader(&builder);
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t comm = builder.AddComm(7 + i, 3, 4);
    for (uint64_t tick = 2000; tick < 2012; ++tick) builder.AddAllReduce(comm, tick);
    if (!has_markers) continue;
    segment::CommEntry* entry = builder.entry(comm);
    entry->flags = segment::kFlagRing | segment::kFlagMarkers;
    builder.lane(comm, 0)->started = 12;
    builder.lane(comm, 1)->finished = 11;
    entry->checkpoints[1].position = 16;
    entry->checkpoints[1].signature = 5;
    entry->graph_launches = 1;
    entry->graph_launch[0].graph = 1;
    entry->graph_launch[0].records = 3;
  }
  return ToPieces(&builder, flags);
}

// A rank of MPI that waits for a message, with the counts of its messages, and for a key of a
// store.
std::string MessagesAndKeys(uint8_t flags) {
  SegmentBuilder builder;
  FillHeader(&builder);
  const uint32_t comm = builder.AddComm(7, 3, 4);
  builder.AddAllReduce(comm, 2000);
  builder.entry(comm)->flags = segment::kFlagRing | segment::kFlagMessages;
  auto* table = reinterpret_cast<segment::MessageTable*>(builder.lane(comm, 0));
  table->used = 3;
  table->lost = 1;
  const std::pair<int32_t, int32_t> kPeers[] = {
      {2, 5}, {segment::kAnySource, segment::kAnyTag}, {0, segment::kMixedTags}};
  for (size_t i = 0; i < std::size(kPeers); ++i) {
    segment::MessageEntry* entry = &table->entries[7 * i];
    entry->key = segment::MessageKey(kPeers[i].first, kPeers[i].second);
    entry->sends = 4;
    entry->receives = 3;
    entry->receives_awaited = 1;
  }
  segment::BlockedEntry* blocked = builder.blocked(0);
  blocked->key = 1;
  segment::AwaitedKey* key = &builder.header()->awaited_keys[0];
  key->tid = 4121;
  key->keys = 2;
  key->timeout_ms = 300'000;
  std::strcpy(key->text, "default_pg/0//cuda/0");
  return ToPieces(&builder, flags);
}

// Transfers of the first of two communicators. The builder's file ends before them.
std::string Transfers(uint8_t flags) {
  constexpr uint8_t kRegion = 11;
  static_assert(kSegmentRegions[kRegion] == segment::kNetworkOffset);
  std::string words;
  for (const bool sends : {true, false}) {
    const uint64_t key = segment::NetworkKey({0, 1, sends ? 2 : 1, sends, false});
    for (const uint64_t word : {key, uint64_t{1000}, uint64_t{2000}, uint64_t{3}, uint64_t{1},
                                uint64_t{0x030400}, uint64_t{2500}, uint64_t{0}}) {
      words += Bytes(word);
    }
  }
  const size_t chunks = offsetof(segment::SegmentHeader, network_chunks);
  return TwoCommunicators(flags, false) + Bytes(uint8_t{0}) + Bytes(static_cast<uint16_t>(chunks)) +
         Part(Bytes(uint32_t{1})) + Bytes(kRegion) + Bytes(uint16_t{0}) + Part(words);
}

// A piece of one word.
std::string WordAt(uint8_t region, size_t offset, uint64_t word) {
  return Bytes(region) + Bytes(static_cast<uint16_t>(offset)) + Part(Bytes(word));
}

// The process works on while the reader reads: each piece comes before another pread().
std::string ChangesWithinRead() {
  constexpr size_t kEntered = offsetof(segment::CommEntry, entered);
  constexpr size_t kSequence = offsetof(segment::RecordEntry, seq);
  std::string changes;
  for (uint8_t calls = 1; calls <= 12; ++calls) {
    changes += static_cast<char>(kSegmentLater) + Bytes(calls) +
               (calls % 2 == 0 ? WordAt(2, kEntered, 12 + calls) : WordAt(4, kSequence, calls));
  }
  return changes;
}

void AddSegments(std::vector<std::string>* seeds) {
  seeds->push_back(TwoCommunicators(0, false));
  seeds->push_back(TwoCommunicators(kOfThisBoot, true));
  // Read, then a changed piece, then read again.
  const std::string reads(1, static_cast<char>(kSegmentRead));
  seeds->push_back(TwoCommunicators(kOfThisBoot | kByHostClock, true) + reads +
                   WordAt(2, offsetof(segment::CommEntry, recorded), 20) + reads);
  seeds->push_back(TwoCommunicators(kOfThisBoot, true) + ChangesWithinRead() + reads);
  seeds->push_back(TwoCommunicators(kCutShort, false));
  seeds->push_back(MessagesAndKeys(kOfThisBoot));
  seeds->push_back(Transfers(kOfThisBoot) + reads);
  seeds->push_back(MessagesAndKeys(kOfThisBoot | kByHostClock) + reads +
                   WordAt(3, offsetof(segment::MessageTable, entries), 1) + reads);
}

// Memory with one interpreter, one thread and two frames of one function.
class PythonMemory {
 public:
  explicit PythonMemory(const PythonLayout& layout) : layout_(layout), bytes_(8192, '\0') {}

  std::string Make() {
    Word(kPythonRuntime + layout_.runtime_interpreters, kInterpreter);
    Word(kInterpreter + layout_.interpreter_threads, kState);
    Word(kState + layout_.thread_id, kPythonThread);
    if (layout_.thread_native_id != 0) Word(kState + layout_.thread_native_id, kPythonThread);
    Word(kState + layout_.thread_frame, layout_.frame_indirect ? kIndirect : kFrame);
    if (layout_.frame_indirect) Word(kIndirect + layout_.cframe_frame, kFrame);
    Word(kFrame + layout_.frame_previous, kOuter);
    for (const uint64_t frame : {kFrame, kOuter}) {
      Word(frame + layout_.frame_code, kCode);
      Word(frame + layout_.frame_instruction, kCode + layout_.code_instructions + 4);
    }
    const uint32_t name = layout_.code_qualname != 0 ? layout_.code_qualname : layout_.code_name;
    Word(kCode + name, Text(0x1800, "train_epoch"));
    Word(kCode + layout_.code_filename, Text(0x1900, "/x/threading.py"));
    Word(kCode + layout_.code_lines, Lines(0x1a00));
    return bytes_;
  }

 private:
  static constexpr uint64_t kInterpreter = 0x800, kState = 0x1000, kIndirect = 0x1300,
                            kFrame = 0x1400, kOuter = 0x1500, kCode = 0x1600;

  void Word(uint64_t address, uint64_t value) {
    if (address + 8 <= bytes_.size()) std::memcpy(&bytes_[address], &value, 8);
  }
  uint64_t Text(uint64_t address, const std::string& text) {
    Word(address + layout_.string_length, text.size());
    Word(address + layout_.string_state, 1 << 2 | 1 << 5 | 1 << 6);
    bytes_.replace(address + layout_.string_ascii_bytes, text.size(), text);
    return address;
  }
  uint64_t Lines(uint64_t address) {
    const std::string lines = "\x80\x12\xdb\x04\x08";
    Word(address + layout_.bytes_size, lines.size());
    bytes_.replace(address + layout_.bytes_data, lines.size(), lines);
    return address;
  }

  const PythonLayout& layout_;
  std::string bytes_;
};

// The memory of an interpreter that publishes its offsets: a 3.13 with the structures of 3.12.
// kWords313 in python_layout.cc has the numbers of the words.
std::string PublishedMemory() {
  const std::pair<int, uint64_t> offsets[] = {
      {1, 0x030d0000}, {5, 1000}, {8, 0},    {9, 72},   {14, 384}, {15, 400}, {17, 416}, {18, 408},
      {21, 8},         {23, 56},  {24, 136}, {25, 144}, {28, 72},  {29, 8},   {30, 0},   {31, 56},
      {32, 72},        {33, 70},  {35, 112}, {36, 120}, {37, 128}, {38, 136}, {39, 68},  {43, 192},
      {45, 8},         {65, 16},  {66, 32},  {68, 32},  {69, 16},  {70, 40}};
  uint64_t words[kDebugOffsetWords] = {};
  for (const auto& [word, offset] : offsets) words[word] = offset;
  std::memcpy(words, "xdebugpy", 8);
  const auto layout = PythonLayoutFromDebugOffsets(words);
  Promise(layout.has_value(), "the seed has plausible offsets");
  std::string memory = PythonMemory(*layout).Make();
  std::memcpy(&memory[kPythonRuntime], words, sizeof(words));
  return memory;
}

std::string StackAnswer() {
  Frame frame;
  frame.function = "train";
  frame.source_file = "/x/train.py";
  frame.line = 57;
  frame.python = true;
  ThreadStack thread;
  thread.tid = 4121;
  thread.name = "python";
  thread.state = 'S';
  thread.frames = {frame, Frame()};
  ProcessStack stack;
  stack.pid = 4121;
  stack.method = "ptrace";
  stack.threads = {thread};
  return ToBytes(stack);
}

}  // namespace

void AddAgentSeeds(Seeds* seeds) {
  AddSegments(&(*seeds)["segment"]);
  (*seeds)["stack_answer"] = {StackAnswer(), ToBytes(std::vector<uint64_t>{8, 16})};
  (*seeds)["python"].push_back("\xff" + PublishedMemory());
  for (uint8_t minor = 8; minor <= 12; ++minor) {
    (*seeds)["python"].push_back(static_cast<char>(minor) +
                                 PythonMemory(*FindPythonLayout(minor)).Make());
  }
}

void AddElfSeeds(const std::string& elf, Seeds* seeds) {
  // In the functions of small_library.cc.
  for (const uint32_t address : {0x2f8u, 0x310u, 0x350u}) {
    (*seeds)["elf"].push_back(Bytes(address) + Bytes(uint64_t{address} + 8) + elf);
    std::string stack;
    for (uint64_t word = 0; word < 16; ++word) {
      stack += Bytes(word % 4 == 3 ? kUnwindCode + address + word : kUnwindStack + 8 * word + 16);
    }
    (*seeds)["unwind"].push_back(Bytes(kUnwindCode + address) + Bytes(uint16_t{8}) +
                                 Bytes(kUnwindStack + 16) + Part(stack) + elf);
  }
}

}  // namespace fuzz
}  // namespace rollcall
