// SPDX-License-Identifier: Apache-2.0
// The layout of a segment: the file in which a training process records its state for the agent of
// the host, and which outlives the process.
//
// Only the process writes the segment, except for the few words by which an agent requests stacks.
// Any process may read it at any time, also weeks later on another machine. No access waits or
// locks: a stopped reader cannot slow training, and a killed writer leaves every completed word. A
// reader treats the segment as hostile (agent/segments/segment_reader.h does).
//
//   0       SegmentHeader     4096 bytes
//   4096    BlockedEntry[128] 8192 bytes: threads inside a blocking call
//   12288   StackSlot[64]     4096 bytes: stack requests, and their replies
//   16384   CommBlock[0]      40960 bytes, one for each communicator, appended
//   57344   CommBlock[1]      as communicators are created; the file ends with
//   ...                       the last one, or with the stack area
//   41959424  StackCopy[64]   65536 bytes each: the stack area. A hole, except
//                             while an agent requests stacks
//   46153728  Site[1024]      262144 bytes: lines of Python that made calls; a
//                             hole unless call sites are on
//   46415872  Shape[255]      28560 bytes: shapes of tensors; a hole unless the
//                             program gives some
//   46444544  NetworkEntry[2048] 131072 bytes: states of NCCL's transfers over the
//                             network (segment_network.h), in 8 chunks; a hole
//                             unless NCCL reports them
//
//   CommBlock:  CommEntry 4096 | markers 4096 | RecordEntry[512] 32768
//
// If the folder has little room, a CommBlock has 64 records, or none. The rest of it is a hole.
//
// This is an ABI between separately deployed binaries. Change it only with
// kLayoutVersion, and describe the change in docs/segment_format.md.
//
// Times are ticks of the clock that SegmentHeader::clock_source names; the
// clock pairs in the header turn them into nanoseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rollcall::segment {

inline constexpr uint64_t kMagic = 0x4745534c4c434c52;  // "RLCLLSEG"
inline constexpr uint32_t kLayoutVersion = 5;
inline constexpr uint32_t kBlockedCapacity = 128;
inline constexpr uint32_t kCommCapacity = 1024;
inline constexpr uint32_t kRingCapacity = 512;        // a power of two
inline constexpr uint32_t kCheckpointInterval = 16;   // positions between two checkpoints
inline constexpr uint32_t kCheckpointCapacity = 128;  // so the last 2048 positions can be compared
inline constexpr uint32_t kMarkerLanes = 4;
inline constexpr uint32_t kGraphLanes = 60;
inline constexpr uint32_t kGraphLaunches = 16;
inline constexpr uint32_t kErrorBytes = 512;
inline constexpr uint32_t kThreadNameBytes = 64;
inline constexpr uint32_t kNoComm = 0xffffffff;

using Word = std::atomic<uint64_t>;
using HalfWord = std::atomic<uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);
static_assert(HalfWord::is_always_lock_free && sizeof(HalfWord) == 4);

enum class ClockSource : uint32_t {
  kMonotonic = 0,  // ticks are CLOCK_MONOTONIC nanoseconds
  kCounter = 1,    // ticks are the CPU's time-stamp counter
};

// Parts of the segment that are missing because the folder has no room, the first ones first.
enum LeftOut : uint32_t {
  kLeftOutRecords = 1,        // communicators have shorter rings (CommEntry::ring_capacity)
  kLeftOutRings = 2,          // communicators have no records
  kLeftOutCommunicators = 4,  // communicators are missing (lost_communicators)
  kLeftOutNetwork = 8,        // there are no states of transfers over the network
};

enum class ExitMark : uint32_t { kNone = 0, kExited = 1 };

// Holds one instant on three clocks.
struct ClockPair {
  Word ticks;
  Word monotonic_ns;
  Word realtime_ns;
};

// The program's annotations (rollcall.h). Stored as words, so that no thread waits: a phase that is
// read during a change may mix the old text and the new one.
inline constexpr size_t kPhaseWords = 6;
struct Annotations {
  Word step;                // 1 + the step, or 0
  Word phase[kPhaseWords];  // text, with zeros after it
};

// A key of a store (PyTorch's TCPStore, FileStore) that a thread waits for. Readers check the text.
struct AwaitedKey {
  HalfWord tid;     // 0 if the entry is free
  HalfWord keys;    // the number of keys that the thread waits for; `text` is the first of them
  Word timeout_ms;  // of the wait, or 0; kUnknownTimeout
  char text[176];   // with a 0 at the end; of a longer key its number (key_number.h) and its end
};
static_assert(sizeof(AwaitedKey) == 192);
inline constexpr uint32_t kAwaitedKeys = 8;
inline constexpr uint64_t kUnknownTimeout = UINT64_MAX;

struct SegmentHeader {
  // Written last: a reader that sees it sees all fields that are written once.
  Word magic;
  uint32_t layout_version;
  uint32_t header_bytes;  // offset of CommBlock[0]
  uint32_t comm_block_bytes;
  uint32_t ring_capacity;
  uint32_t blocked_capacity;
  uint32_t checkpoint_interval;

  int32_t pid;  // in the process's own pid namespace
  uint32_t stack_slots;
  uint64_t start_time;  // clock ticks since boot, /proc/PID/stat field 22
  char host[64];
  char boot_id[40];
  // ROLLCALL_JOB, or the launcher's job id, or empty. `long_job` has the whole name.
  char job[64];
  int32_t global_rank, world_size, local_rank;  // from the environment, or -1
  int32_t nccl_version;                         // NCCL_VERSION_CODE; 0 if unknown
  char command[256];                            // argv: each argument ends with a 0
  char library_version[16];
  char gpu_sharing[8];  // "MIG", "MPS"; empty if no variable shows that the GPU is shared

  ClockSource clock_source;
  uint32_t reserved2;
  ClockPair first_clock;  // when the segment was made
  ClockPair last_clock;   // renewed in calls off the hot path; zero until then

  // Facts that change, each a word of its own.
  alignas(64) HalfWord exit_mark;  // ExitMark
  HalfWord comm_count;             // CommBlocks in use, never falls
  Word exit_ticks;

  // Counts of what could not be recorded.
  Word lost_communicators;  // created while the table or the file system was full
  Word reserved3;           // was lost_rings, which nothing read
  Word lost_threads;        // threads beyond kBlockedCapacity
  Word unknown_comm_calls;  // calls on communicators whose creation was not recorded
  Word lost_graph_calls;    // calls in CUDA graphs whose launches cannot be recorded

  HalfWord stack_signal;  // makes a thread's handler check the stack slots, or 0
  HalfWord site_count;    // Sites that can be read; never falls
  HalfWord requester;     // written by the requester of stacks: a number in its socket's name

  // An uncaught Python exception: the last line of its traceback, and the line that raised it.
  // Written before `error_ticks`, which is 0 while there is none.
  Word error_ticks;
  char error[kErrorBytes];  // "ValueError: no such file at train.py:57"

  Annotations annotations;

  // The fields below are 0 in segments of older libraries.
  uint64_t pid_namespace;  // inode of /proc/self/ns/pid; `pid` is a number in that namespace
  HalfWord life_lock;      // 1: the process holds an OFD lock on the file's first byte
  HalfWord left_out;       // LeftOut: the parts that there was no room for
  char long_job[256];      // the job's name (CopyJobName() in environment.h)
  // 1 + the number of seccomp filters when the segment was made; 0 if unknown. A thread that has
  // more has forbidden itself system calls since, and may be killed for those of a stack request.
  HalfWord seccomp_filters;
  // The newest Python exception that ended a thread, and the thread's name in Python. Written
  // before `thread_error_ticks`, which is 0 while there is none.
  Word thread_error_ticks;
  char failed_thread[kThreadNameBytes];
  char thread_error[kErrorBytes];  // as `error`
  AwaitedKey awaited_keys[kAwaitedKeys];
  HalfWord network_chunks;   // bit n: chunk n of the NetworkEntries can be read; never reset
  Word lost_network_states;  // operations on transfers for which no NetworkEntry was free
};
static_assert(sizeof(SegmentHeader) <= 4096);

// A thread that makes calls. `since` is not 0 while the thread is inside a blocking call.
struct BlockedEntry {
  HalfWord tid;   // 0 if the entry is free
  HalfWord op;    // an Op
  HalfWord comm;  // index of the CommBlock; kNoComm
  HalfWord key;   // 1 + the index of an AwaitedKey, or 0
  Word since;     // ticks
  // What the thread waits for: a stream or an event, for comparison only; for calls of MPI and gloo
  // 1 + the position of the collective, 0 if it waits for none.
  Word stream;
  Word reserved_words[4];
};
static_assert(sizeof(BlockedEntry) == 64);

inline constexpr uint32_t kStackSlots = 64;

enum StackRequestFlags : uint32_t {
  kRequestMemory = 1,  // send a descriptor of the process's memory to the requester's socket
};

// A stack request to one thread, and the reply. The requester makes room for the copy, writes
// `flags` and `requested`, and sends the thread `stack_signal` with the same number as the signal's
// value. The thread's handler sets `claimed`, checks `requested` again, writes the copy, and sets
// `answered`. A requester that gives up sets `requested` to 0. If `claimed` then equals `answered`,
// no thread writes to the slot or will.
struct StackSlot {
  Word requested;  // request number << 8 | index of this slot; 0 if there is no request
  Word claimed;
  Word answered;
  HalfWord flags;        // StackRequestFlags
  HalfWord stack_bytes;  // how many were copied
  Word stack_pointer;    // the address that they were copied from
  Word reserved[3];
};
static_assert(sizeof(StackSlot) == 64);

// Sockets beside the segments, and the byte for the kind of a passed descriptor. "agent.sock" is
// the agent's, "ask-<requester>.sock" a requester's.
inline constexpr char kAgentSocket[] = "agent.sock";
inline constexpr char kRequesterSocketPrefix[] = "ask-";
inline constexpr char kSocketSuffix[] = ".sock";
inline constexpr char kMemoryDescriptor = 'm';
inline constexpr char kStderrDescriptor = 'q';  // write all stacks of the sender to it

// A copy: registers in the order of ptrace's user_regs_struct, then the top of the stack.
inline constexpr size_t kStackCopyBytes = 65536;
inline constexpr size_t kRegistersBytes = 1024;  // reserved for the registers
inline constexpr size_t kMaxStackInCopy = kStackCopyBytes - kRegistersBytes;

enum class CommState : uint32_t {
  kEmpty = 0,
  kInitializing = 1,
  kReady = 2,
  kFinalizing = 3,  // inside CommFinalize or CommDestroy
  kFinalized = 4,
  kDestroyed = 5,
  kAborted = 6,
  kRevoked = 7,
  kFailed = 8,      // creation returned an error
  kPassedOver = 9,  // entered a split and is not a member of a child (NCCL_SPLIT_NOCOLOR)
};

enum CommFlags : uint32_t {
  kFlagNonBlocking = 1,
  kFlagMarkers = 2,  // the GPU writes started and finished
  kFlagRing = 4,     // the block has records
  // 8: never used
  kFlagHostCalls = 16,     // calls are done when they return: nothing goes to a GPU
  kFlagGraphMarkers = 32,  // the GPU writes which call of a graph it has reached
  kFlagMessages = 64,      // counts messages in the place of the markers (segment_messages.h)
};

// A launch of a CUDA graph that holds calls of the communicator.
struct GraphLaunchEntry {
  Word graph;         // nth graph of the process that holds calls, from 1
  Word launch;        // of this graph, from 1
  Word first_record;  // index of its first call's record
  Word records;       // calls on this communicator
};

// A running signature, and the number of calls that it covers.
struct CheckpointEntry {
  Word position;
  Word signature;
};

struct CommEntry {
  HalfWord state;  // CommState
  HalfWord flags;  // CommFlags
  // During a split the entry describes the split itself (`split_id`, the parent's ranks and size),
  // because no rank has the members of its colour yet. `id`, `rank` and `size` are the child's once
  // the split has returned.
  Word id;
  Word parent_id;
  Word split_id;         // 0 if not created by a split
  HalfWord rank;         // int32
  HalfWord size;         // int32
  HalfWord device;       // int32; -1 if unknown
  HalfWord child_count;  // splits and shrinks that this communicator's rank has entered
  HalfWord parent_rank, parent_size;
  Word base_id;  // hash of the unique id alone; 0 if this rank has none
  alignas(8) char name[64];
  Word init_entered;  // ticks
  Word reserved;
  Word state_since;      // ticks
  HalfWord kind;         // CommKind (comm_kind.h); 0 in segments of older libraries
  HalfWord async_error;  // ncclResult_t
  // Set by the rank that made the newest unique id for growing this communicator: the hash of that
  // id, which is all that the joining ranks have, and the id that the other ranks compute.
  Word grow_base_id;
  Word grow_id;
  HalfWord ring_capacity;  // records in the ring, a power of two; 0 means kRingCapacity

  // Progress. Collectives take positions; sends and receives have counts of their own.
  alignas(64) Word entered;
  Word signature;  // of the `entered` collectives
  Word returned;
  Word p2p_entered;
  Word p2p_returned;
  Word recorded;        // records begun: the index of the next one
  Word last_entered;    // ticks of the newest call
  Word graph_launches;  // of graphs that hold calls of this communicator

  GraphLaunchEntry graph_launch[kGraphLaunches];  // the newest; slot n % capacity

  // Slot (position / interval) % capacity.
  alignas(64) CheckpointEntry checkpoints[kCheckpointCapacity];
};
static_assert(sizeof(CommEntry) <= 4096);

// Words that the GPU writes in stream order. The streams of a communicator share a few lanes. If
// two streams share one, a word may go back for a moment: the truth is the greatest value over all
// lanes and all reads.
struct alignas(64) MarkerLane {
  Word started;   // collectives that the GPU has reached
  Word finished;  // collectives that the GPU has finished
  Word p2p_started;
  Word p2p_finished;
  Word reserved[4];
};
static_assert(sizeof(MarkerLane) == 64);

// Words that the GPU writes from inside a CUDA graph, with ROLLCALL_GRAPH_MARKERS=1. A graph has
// the lane of its number modulo kGraphLanes. A launch resets `reached` before it sets `base`, so a
// reader that reads `base` first never gets a sum above the truth.
struct alignas(64) GraphLane {
  Word base;     // collectives entered before the launch
  Word reached;  // of the graph's calls: reached; in the upper half: done at least
  Word p2p_base;
  Word p2p_reached;
  Word reserved[4];
};
static_assert(sizeof(GraphLane) == 64);

enum RecordFlags : uint8_t {
  kRecordCaptured = 1,  // captured into a CUDA graph: has not happened, and takes no position
  kRecordP2p = 2,
  kRecordReplayed = 4,  // made by a launch of a CUDA graph
};

struct RecordEntry {
  HalfWord seq;  // 2n+1 while record n is written, 2n+2 once it can be read (mod 2^32)
  uint32_t thread;
  int32_t peer;    // root or peer, or -1
  uint16_t group;  // nth group of the thread, or 0
  uint8_t op;
  uint8_t dtype;
  uint8_t reduction;
  std::atomic<uint8_t> result;  // ncclResult_t, valid once `returned` is set
  uint8_t flags;                // RecordFlags
  uint8_t shape;                // 1 + index of a Shape, or 0
  uint32_t position;            // low 32 bits
  uint64_t entered;             // ticks
  Word returned;                // ticks; 0 if not yet
  uint64_t count;               // elements
  uint64_t stream;              // for comparison only
  uint64_t caller;              // code address; upper 16 bits: 1 + index of a Site, or 0
};
static_assert(sizeof(RecordEntry) == 64);

// A line of Python that made calls. Written once, before `site_count` includes it.
struct Site {
  int32_t line;  // 0 if unknown
  uint32_t reserved;
  char file[160];  // the end of a longer path
  char function[88];
};
static_assert(sizeof(Site) == 256);
inline constexpr uint32_t kSiteCapacity = 1024;
inline constexpr int kSiteShift = 48;  // of the site's number in RecordEntry::caller

// The sizes of a tensor, from the program (rollcall.h) or from PyTorch (torch_shapes.h). Written
// once.
inline constexpr int kShapeDims = 9;
struct Shape {
  HalfWord dims;  // 1 + the number of dimensions; 0 if not written yet
  uint32_t reserved;
  int64_t sizes[kShapeDims];
  char call[32];  // the framework's name of the call: "all_to_all_single"; empty means NCCL's name
};
static_assert(sizeof(Shape) == 112);
inline constexpr uint32_t kNoSizes = kShapeDims + 2;  // in Shape::dims: there is only a name
inline constexpr uint32_t kShapeCapacity = 255;

inline constexpr size_t kBlockedOffset = 4096;
inline constexpr size_t kStackSlotsOffset =
    kBlockedOffset + kBlockedCapacity * sizeof(BlockedEntry);
inline constexpr size_t kHeaderBytes = kStackSlotsOffset + kStackSlots * sizeof(StackSlot);
inline constexpr size_t kMarkersOffset = 4096;  // within a CommBlock
inline constexpr size_t kGraphLanesOffset = kMarkersOffset + kMarkerLanes * sizeof(MarkerLane);
inline constexpr size_t kRingOffset = 8192;
static_assert(kGraphLanesOffset + kGraphLanes * sizeof(GraphLane) == kRingOffset);
inline constexpr size_t kCommBlockBytes = kRingOffset + kRingCapacity * sizeof(RecordEntry);
static_assert(kHeaderBytes % 4096 == 0 && kCommBlockBytes % 4096 == 0);

inline constexpr size_t CommBlockOffset(uint32_t index) {
  return kHeaderBytes + static_cast<size_t>(index) * kCommBlockBytes;
}

inline constexpr size_t kStackAreaOffset = CommBlockOffset(kCommCapacity);
inline constexpr size_t kStackAreaBytes = kStackSlots * kStackCopyBytes;
inline constexpr size_t kSitesOffset = kStackAreaOffset + kStackAreaBytes;
inline constexpr size_t kShapesOffset = kSitesOffset + kSiteCapacity * sizeof(Site);
inline constexpr size_t kShapesEnd = kShapesOffset + kShapeCapacity * sizeof(Shape);
// The room is reserved a chunk at a time (segment_network.h).
inline constexpr size_t kNetworkOffset = (kShapesEnd + 4095) / 4096 * 4096;
inline constexpr uint32_t kNetworkChunks = 8;
inline constexpr size_t kNetworkChunkBytes = 16384;
inline constexpr size_t kMappedBytes = kNetworkOffset + kNetworkChunks * kNetworkChunkBytes;

// The chained hash of `signature`: equal on two ranks exactly if they made the same calls in the
// same order (up to 64-bit collisions).
inline constexpr uint64_t kSignatureSeed = 0x9e3779b97f4a7c15;

constexpr uint64_t Mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0xff51afd7ed558ccd;
  return h ^ (h >> 32);
}

// `op` must be canonical. `peer` is the root; -1 if the call has none.
constexpr uint64_t NextSignature(uint64_t signature, uint8_t op, uint8_t dtype, uint8_t reduction,
                                 int32_t peer, uint64_t count) {
  const uint64_t head = op | uint64_t{dtype} << 8 | uint64_t{reduction} << 16 |
                        static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32;
  return Mix(Mix(signature, head), count);
}

// FNV-1a over the bytes, finished with Mix(). Derives ids from unique ids.
inline uint64_t HashBytes(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t h = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) h = (h ^ bytes[i]) * 0x100000001b3;
  return Mix(kSignatureSeed, h);
}

}  // namespace rollcall::segment
