// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/python/call_sites.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/environment.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/python/python_files.h"
#include "interpose/python/python_layout.h"
#include "interpose/python/python_lines.h"
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
constexpr uint32_t kSlots = 8192;     // sites seen, also those in libraries
constexpr uint32_t kMostSeen = 6144;  // that have a slot; further sites get no number
constexpr uint64_t kLibrarySite = 0xffff;
constexpr uint64_t kReferenceMask = ~uint64_t{7};
constexpr size_t kMostTable = 1 << 20;

using ThreadStateFn = void* (*)();

// Set before has_call_sites, and constant then.
PythonLayout layout;
ThreadStateFn thread_state;
uint64_t code_type, string_type, bytes_type;

// A slot of a seen site: its key in the upper 48 bits (never all 0), its number in the lower 16.
std::atomic<uint64_t> seen_sites[kSlots];
std::atomic<uint32_t> seen_count{0};
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

struct CodeSite {
  uint64_t code = 0;        // 0 if the frame runs no Python
  int64_t instruction = 0;  // bytes from the first one; below 0 if not begun
};

CodeSite ReadFrameSite(uint64_t frame) {
  CodeSite site;
  if (layout.frames == PythonFrames::kEntryFrames &&
      At<uint8_t>(frame, layout.frame_owner) >= kFirstForeignOwner) {
    return site;
  }
  const uint64_t code = At<uint64_t>(frame, layout.frame_code) & kReferenceMask;
  if (code == 0 || At<uint64_t>(code, layout.object_type) != code_type) return site;
  site.code = code;
  if (layout.frames == PythonFrames::kObjects) {
    const int unit = layout.lines == PythonLines::kLnotab ? 1 : 2;
    site.instruction = int64_t{At<int32_t>(frame, layout.frame_instruction)} * unit;
  } else {
    site.instruction = static_cast<int64_t>(At<uint64_t>(frame, layout.frame_instruction) - code -
                                            layout.code_instructions);
  }
  return site;
}

// A code object's address may be used again, so the key also covers its file, name and first line.
uint64_t SiteKey(const CodeSite& site) {
  uint64_t key = segment::Mix(site.code, static_cast<uint64_t>(site.instruction));
  key = segment::Mix(key, At<uint64_t>(site.code, layout.code_filename));
  key = segment::Mix(key, At<uint64_t>(site.code, layout.code_name));
  key = segment::Mix(key, At<uint32_t>(site.code, layout.code_first_line));
  return key >> 16 << 16 | uint64_t{1} << 16;
}

// Copies a string as ASCII, with '?' for any other character. Keeps the end of a long string.
void CopyPythonText(uint64_t object, char* out, size_t size) {
  out[0] = '\0';
  if (object == 0 || At<uint64_t>(object, layout.object_type) != string_type) return;
  const auto form = ParsePythonStringForm(At<uint32_t>(object, layout.string_state));
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

int FindLine(const CodeSite& site) {
  const auto first_line = At<int32_t>(site.code, layout.code_first_line);
  const auto table = At<uint64_t>(site.code, layout.code_lines);
  if (table == 0 || At<uint64_t>(table, layout.object_type) != bytes_type) return first_line;
  const auto size = At<int64_t>(table, layout.bytes_size);
  if (size < 0 || static_cast<size_t>(size) > kMostTable) return first_line;
  return PythonLine(layout.lines, reinterpret_cast<const uint8_t*>(table + layout.bytes_data),
                    static_cast<size_t>(size), first_line, site.instruction);
}

// Adds the site to the segment. Returns its number, kLibrarySite, or 0 if there is no room.
uint64_t AddSite(const CodeSite& code_site, bool also_in_library) {
  Site site;
  memset(&site, 0, sizeof(site));
  CopyPythonText(At<uint64_t>(code_site.code, layout.code_filename), site.file, sizeof(site.file));
  if (!also_in_library && IsPythonLibraryFile(site.file)) return kLibrarySite;
  const uint32_t name = layout.code_qualname != 0 ? layout.code_qualname : layout.code_name;
  CopyPythonText(At<uint64_t>(code_site.code, name), site.function, sizeof(site.function));
  site.line = FindLine(code_site);
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

// The number of the site, kLibrarySite, or 0 if there is no room for it.
uint64_t FindSite(const CodeSite& site, bool also_in_library) {
  // A site in a library can be skipped in one thread and used in a thread that has no other.
  const uint64_t key = SiteKey(site) ^ (also_in_library ? uint64_t{1} << 63 : 0);
  const auto start = static_cast<uint32_t>(key >> 17);
  for (uint32_t i = 0; i < 16; ++i) {
    std::atomic<uint64_t>& slot = seen_sites[(start + i) % kSlots];
    uint64_t seen = slot.load(std::memory_order_acquire);
    if (seen >> 16 == key >> 16) return seen & 0xffff;
    if (seen != 0) continue;
    if (seen_count.load(std::memory_order_relaxed) >= kMostSeen) return 0;
    seen_count.fetch_add(1, std::memory_order_relaxed);
    const uint64_t number = AddSite(site, also_in_library);
    // Another thread may have added the site first. The segment then holds the site twice.
    slot.compare_exchange_strong(seen, (key >> 16 << 16) | number);
    return number;
  }
  return 0;
}

// Reads memory that may not be mapped: a failed copy instead of a SIGSEGV.
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
  const PythonLayout* known = FindPythonLayout(static_cast<int>(LeadingNumber(text + 2)));
  if (known == nullptr) return false;
  layout = *known;
  return true;
}

// Whether the layout fits this thread's innermost frame: the thread state has the thread's id, the
// code is a code object, its file name is a string.
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
  dlerror();  // hide our failed look-ups from the program
  has_call_sites.store(right, std::memory_order_release);
  busy.store(false);
}

void StopCallSites() {
  if (!has_call_sites.exchange(false)) return;
  for (std::atomic<uint64_t>& site : seen_sites) site.store(0, std::memory_order_relaxed);
  seen_count.store(0);
  sites_claimed.store(0);
}

uint64_t FindCurrentSite() {
  const auto state = reinterpret_cast<uint64_t>(thread_state());
  if (state == 0) return 0;
  CodeSite innermost;
  uint64_t frame = InnermostFrame(state);
  for (int i = 0; i < kMostFrames && frame != 0; ++i) {
    const CodeSite site = ReadFrameSite(frame);
    frame = At<uint64_t>(frame, layout.frame_previous);
    if (site.code == 0) continue;
    if (innermost.code == 0) innermost = site;
    const uint64_t number = FindSite(site, false);
    if (number != kLibrarySite) return number;
  }
  return innermost.code == 0 ? 0 : FindSite(innermost, true);
}

}  // namespace rollcall
