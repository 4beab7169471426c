// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/call_sites.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/python_files.h"
#include "interpose/python_layout.h"
#include "interpose/python_lines.h"
#include "interpose/real.h"
#include "interpose/recorder.h"
#include "interpose/segment.h"
#include "interpose/segment_file.h"

namespace rollcall {

std::atomic<bool> has_call_sites{false};

namespace {

using segment::SegmentHeader;
using segment::Site;

constexpr int kMostFrames = 40;
constexpr uint32_t kSlots = 8192;       // places seen, those of libraries too
constexpr uint32_t kMostPlaces = 6144;  // beyond that nothing new is described
constexpr uint64_t kOfLibrary = 0xffff;
constexpr uint64_t kReferenceMask = ~uint64_t{7};
constexpr size_t kMostTable = 1 << 20;

using ThreadStateFn = void* (*)();

// Set before has_call_sites, and constant then.
PythonLayout layout;
ThreadStateFn thread_state;
uint64_t code_type, string_type, bytes_type;

// Key of a place in the upper 48 bits (never all 0), its Site's number in the lower 16.
std::atomic<uint64_t> places[kSlots];
std::atomic<uint32_t> place_count{0};
std::atomic<uint32_t> sites_claimed{0};

template <typename Value>
Value At(uint64_t address, uint32_t offset) {
  Value value;
  memcpy(&value, reinterpret_cast<const void*>(address + offset), sizeof(value));
  return value;
}

uint64_t InnermostFrame(uint64_t state) {
  const auto frame = At<uint64_t>(state, layout.thread_frame);
  if (!layout.frame_indirect || frame == 0) return frame;
  return At<uint64_t>(frame, layout.cframe_frame);
}

struct CodePlace {
  uint64_t code = 0;        // 0: the frame runs no Python
  int64_t instruction = 0;  // bytes from the first one; below 0: not begun
};

CodePlace FramePlace(uint64_t frame) {
  CodePlace place;
  if (layout.frames == PythonFrames::kEntryFrames &&
      At<uint8_t>(frame, layout.frame_owner) >= kFirstForeignOwner) {
    return place;
  }
  const uint64_t code = At<uint64_t>(frame, layout.frame_code) & kReferenceMask;
  if (code == 0 || At<uint64_t>(code, layout.object_type) != code_type) return place;
  place.code = code;
  if (layout.frames == PythonFrames::kObjects) {
    const int unit = layout.lines == PythonLines::kLnotab ? 1 : 2;
    place.instruction = int64_t{At<int32_t>(frame, layout.frame_instruction)} * unit;
  } else {
    place.instruction = static_cast<int64_t>(At<uint64_t>(frame, layout.frame_instruction) - code -
                                             layout.code_instructions);
  }
  return place;
}

// The address of a code object may be another's later: its file, name and line count, too.
uint64_t PlaceKey(const CodePlace& place) {
  uint64_t key = segment::Mix(place.code, static_cast<uint64_t>(place.instruction));
  key = segment::Mix(key, At<uint64_t>(place.code, layout.code_filename));
  key = segment::Mix(key, At<uint64_t>(place.code, layout.code_name));
  key = segment::Mix(key, At<uint32_t>(place.code, layout.code_first_line));
  return key >> 16 << 16 | uint64_t{1} << 16;
}

// ASCII; anything else becomes '?'. Keeps the end of what is too long.
void CopyPythonText(uint64_t object, char* out, size_t size) {
  out[0] = '\0';
  if (object == 0 || At<uint64_t>(object, layout.object_type) != string_type) return;
  const auto form = PythonStringFormOf(At<uint32_t>(object, layout.string_state));
  const auto length = At<int64_t>(object, layout.string_length);
  if (!form.has_value() || length < 0) return;
  const uint64_t text =
      object + (form->ascii ? layout.string_ascii_bytes : layout.string_compact_bytes);
  const auto most = static_cast<int64_t>(size) - 1;
  const int64_t first = length > most ? length - most : 0;
  for (int64_t i = first; i < length; ++i) {
    const uint64_t at = text + static_cast<uint64_t>(i) * form->bytes_per_character;
    uint32_t character = 0;
    memcpy(&character, reinterpret_cast<const void*>(at), form->bytes_per_character);
    *out++ = character >= 0x20 && character < 0x7f ? static_cast<char>(character) : '?';
  }
  *out = '\0';
}

int FindLine(const CodePlace& place) {
  const auto first_line = At<int32_t>(place.code, layout.code_first_line);
  const auto table = At<uint64_t>(place.code, layout.code_lines);
  if (table == 0 || At<uint64_t>(table, layout.object_type) != bytes_type) return first_line;
  const auto size = At<int64_t>(table, layout.bytes_size);
  if (size < 0 || static_cast<size_t>(size) > kMostTable) return first_line;
  return PythonLine(layout.lines, reinterpret_cast<const uint8_t*>(table + layout.bytes_data),
                    static_cast<size_t>(size), first_line, place.instruction);
}

// Its number, or kOfLibrary; 0: no room for more.
uint64_t Describe(const CodePlace& place, bool of_library_too) {
  Site site;
  memset(&site, 0, sizeof(site));
  CopyPythonText(At<uint64_t>(place.code, layout.code_filename), site.file, sizeof(site.file));
  if (!of_library_too && IsOfPythonLibrary(site.file)) return kOfLibrary;
  const uint32_t name = layout.code_qualname != 0 ? layout.code_qualname : layout.code_name;
  CopyPythonText(At<uint64_t>(place.code, name), site.function, sizeof(site.function));
  site.line = FindLine(place);
  const uint32_t index = sites_claimed.fetch_add(1);
  if (index >= segment::kSiteCapacity) return 0;
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return 0;
  memcpy(reinterpret_cast<char*>(header) + segment::kSitesOffset + index * sizeof(site), &site,
         sizeof(site));
  uint32_t count = header->site_count.load();
  while (count < index + 1 && !header->site_count.compare_exchange_weak(count, index + 1)) {
  }
  return index + 1;
}

// The number of the Site there, kOfLibrary, or 0 if there is no room for it.
uint64_t Look(const CodePlace& place, bool of_library_too) {
  // The same place can be passed over as a library's and, in a thread that has no other, be told.
  const uint64_t key = PlaceKey(place) ^ (of_library_too ? uint64_t{1} << 63 : 0);
  const auto start = static_cast<uint32_t>(key >> 17);
  for (uint32_t i = 0; i < 16; ++i) {
    std::atomic<uint64_t>& slot = places[(start + i) % kSlots];
    uint64_t seen = slot.load(std::memory_order_acquire);
    if (seen >> 16 == key >> 16) return seen & 0xffff;
    if (seen != 0) continue;
    if (place_count.load(std::memory_order_relaxed) >= kMostPlaces) return 0;
    place_count.fetch_add(1, std::memory_order_relaxed);
    const uint64_t number = Describe(place, of_library_too);
    // Another thread may have come first; the place is then described twice.
    slot.compare_exchange_strong(seen, (key >> 16 << 16) | number);
    return number;
  }
  return 0;
}

// Copies that fail where a plain read would be a SIGSEGV.
class SafeMemory {
 public:
  SafeMemory() : fd_(syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC)) {}
  ~SafeMemory() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }
  template <typename Value>
  bool Read(uint64_t address, Value* value) const {
    return fd_ >= 0 && address != 0 &&
           syscall(SYS_pread64, fd_, value, sizeof(*value), address) ==
               static_cast<long>(sizeof(*value));
  }

 private:
  const long fd_;
};

bool FindLayout(const SafeMemory& memory) {
  const DlsymFn find = RealDlsym();
  if (find == nullptr) return false;
  const auto symbol = [find](const char* name) {
    return reinterpret_cast<uint64_t>(find(RTLD_DEFAULT, name));
  };
  const uint64_t getter = symbol("PyGILState_GetThisThreadState");
  code_type = symbol("PyCode_Type");
  string_type = symbol("PyUnicode_Type");
  bytes_type = symbol("PyBytes_Type");
  if (getter == 0 || code_type == 0 || string_type == 0 || bytes_type == 0) return false;
  if (!KeepLoaded(reinterpret_cast<const void*>(getter))) return false;
  thread_state = reinterpret_cast<ThreadStateFn>(getter);
  struct Words {
    uint64_t words[kDebugOffsetWords];
  } words;
  if (memory.Read(symbol("_PyRuntime"), &words)) {
    const auto published = PythonLayoutFromDebugOffsets(words.words);
    if (published.has_value()) {
      layout = *published;
      return true;
    }
  }
  const auto version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
  if (version == nullptr) return false;
  const char* text = version();  // "3.11.2 (main, ...)"
  if (strncmp(text, "3.", 2) != 0) return false;
  const PythonLayout* known = PythonLayoutOf(static_cast<int>(strtol(text + 2, nullptr, 10)));
  if (known == nullptr) return false;
  layout = *known;
  return true;
}

// Whether this thread's innermost frame is what the layout says: its state knows its own thread,
// the code is a code object, its file a string.
bool IsRight(const SafeMemory& memory) {
  const auto state = reinterpret_cast<uint64_t>(thread_state());
  uint64_t thread = 0, frame = 0;
  if (!memory.Read(state + layout.thread_id, &thread) ||
      thread != static_cast<uint64_t>(pthread_self()) ||
      !memory.Read(state + layout.thread_frame, &frame)) {
    return false;
  }
  if (layout.frame_indirect && !memory.Read(frame + layout.cframe_frame, &frame)) return false;
  for (int i = 0; i < kMostFrames && frame != 0; ++i) {
    uint64_t code = 0, type = 0, file = 0;
    uint8_t owner = 0;
    if (layout.frames == PythonFrames::kEntryFrames &&
        !memory.Read(frame + layout.frame_owner, &owner)) {
      return false;
    }
    if (owner < kFirstForeignOwner) {
      return memory.Read(frame + layout.frame_code, &code) &&
             memory.Read((code & kReferenceMask) + layout.object_type, &type) &&
             type == code_type &&
             memory.Read((code & kReferenceMask) + layout.code_filename, &file) &&
             memory.Read(file + layout.object_type, &type) && type == string_type;
    }
    if (!memory.Read(frame + layout.frame_previous, &frame)) return false;
  }
  return false;
}

}  // namespace

void StartCallSites() {
  static std::atomic<bool> busy{false};
  if (has_call_sites.load() || busy.exchange(true)) return;
  const KeepErrno keep_errno;
  const SafeMemory memory;
  const bool right = FindLayout(memory) && IsRight(memory) &&
                     ReserveInSegment(segment::kSitesOffset, segment::kShapesOffset);
  dlerror();  // our failed look-ups are not the program's
  has_call_sites.store(right, std::memory_order_release);
  busy.store(false);
}

void StopCallSites() {
  if (!has_call_sites.exchange(false)) return;
  for (std::atomic<uint64_t>& place : places) place.store(0, std::memory_order_relaxed);
  place_count.store(0);
  sites_claimed.store(0);
}

uint64_t FindCurrentSite() {
  const auto state = reinterpret_cast<uint64_t>(thread_state());
  if (state == 0) return 0;
  CodePlace innermost;
  uint64_t frame = InnermostFrame(state);
  for (int i = 0; i < kMostFrames && frame != 0; ++i) {
    const CodePlace place = FramePlace(frame);
    frame = At<uint64_t>(frame, layout.frame_previous);
    if (place.code == 0) continue;
    if (innermost.code == 0) innermost = place;
    const uint64_t number = Look(place, false);
    if (number != kOfLibrary) return number;
  }
  return innermost.code == 0 ? 0 : Look(innermost, true);
}

}  // namespace rollcall
