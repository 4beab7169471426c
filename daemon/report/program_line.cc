// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/program_line.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/base_name.h"
#include "base/cut_text.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/words/process_roles.h"
#include "interpose/python/python_files.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr size_t kMostFunctions = 200;  // of one thread
constexpr size_t kLongName = 60;        // no person reads a longer one

using Words = std::initializer_list<absl::string_view>;

bool StartsWithAny(absl::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StartsWith(text, word); });
}

bool ContainsAny(absl::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StrContains(text, word); });
}

bool IsLibraryModule(absl::string_view path) {
  if (StartsWithAny(path, {"/usr/lib", "/lib", "/usr/local/lib", "/usr/local/cuda", "/usr/libexec",
                           "/opt/conda/", "/opt/nvidia/", "/opt/rocm", "/opt/hpcx", "/opt/intel/",
                           "/opt/cray/", "/usr/local/Ascend/", "/nix/store/", "[", "//anon"})) {
    return true;
  }
  if (ContainsAny(path, {"/site-packages/", "/dist-packages/", "/lib/python3.", "/spack/opt/",
                         ".cache/torch"})) {
    return true;
  }
  const absl::string_view name = BaseName(path);
  return name.empty() ||
         StartsWithAny(
             name, {"python",   "libpython", "libnccl",     "librccl",  "libcuda",   "libnvidia",
                    "libtorch", "libc10",    "librollcall", "libmpi",   "libstdc++", "libc.so",
                    "libc-",    "libm.so",   "libpthread",  "libgcc_s", "libucp",    "libucs",
                    "libgomp",  "libdl",     "ld-linux",    "ld-musl",  "libc++",    "libucc",
                    "libhccl",  "libccl",    "libnvshmem",  "libgloo",  "libfabric", "libascend"});
}

// Code that a header of a library put into the program.
bool IsLibrarySource(absl::string_view file) {
  return StartsWithAny(file, {"/usr/include/", "/usr/lib/", "/usr/local/cuda"}) ||
         ContainsAny(file, {"/include/c++/", "/bits/", "sysdeps/"});
}

bool StartsTheProgram(absl::string_view function) {
  return function == "_start" || function == "start_thread" ||
         absl::StartsWith(function, "__libc_");
}

// Code around a function that shows nothing about it: decorators, hooks, dispatch.
bool IsDull(absl::string_view function) {
  const size_t local = function.rfind("<locals>.");
  const bool is_method = local == absl::string_view::npos && absl::StrContains(function, '.');
  absl::string_view name = function;
  if (local != absl::string_view::npos) name = function.substr(local + 9);
  name = name.substr(name.rfind('.') + 1);
  // clang-format off
  for (const absl::string_view dull :
       {"_wrapped_call_impl", "_call_impl", "wrapper", "wrapped", "wrapped_func", "inner", "_fn",
        "decorate_context", "fsdp_hook_wrapper", "wrapped_fn", "_fn_wrapper", "<lambda>", "helper",
        "new_func", "_inner_fn", "inner_func", "_no_grad_wrapper", "decorator", "wrapped_function",
        "inner_training_loop_wrapper", "_call_and_handle_interrupt", "_wrapped_fn",
        "auto_init_wrapper"}) {
    if (name == dull) return true;
  }
  // clang-format on
  if (is_method) return absl::StartsWith(function, "_GeneratorContextManager.");
  return name == "__call__" || name == "__enter__" || name == "__exit__" || name == "<module>";
}

// Removes what stands between brackets, except inside "operator()" and the like.
std::string WithoutBrackets(absl::string_view name) {
  std::string text;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && absl::EndsWith(text, "operator")) {
      text += c;
      if (c == '(' && i + 1 < name.size()) text += name[++i];
      continue;
    }
    if (absl::StartsWith(name.substr(i), "(anonymous namespace)")) {
      i += sizeof("(anonymous namespace)") - 2;
      if (absl::StartsWith(name.substr(i + 1), "::")) i += 2;
      continue;
    }
    if (c == '(' && depth == 0) break;
    if (c == '<' || c == '{' || c == '(') ++depth;
    if (depth == 0) text += c;
    if ((c == '>' || c == '}' || c == ')') && depth > 0) --depth;
  }
  return text;
}

std::string ShortNative(absl::string_view function) {
  std::string text = WithoutBrackets(function);
  while (!text.empty() && (text.back() == ' ' || text.back() == ':')) text.pop_back();
  const size_t blank = text.rfind(' ');  // after the type of the result
  if (blank != std::string::npos && !absl::StrContains(text, "operator")) text.erase(0, blank + 1);
  return text;
}

// "queue" of "/usr/lib/python3.11/queue.py", "checkpoint" of ".../checkpoint/__init__.py".
std::string PythonModule(absl::string_view file) {
  absl::string_view name = BaseName(file);
  if (name == "__init__.py" || name == "__main__.py") {
    name = BaseName(file.substr(0, file.size() - name.size() - (file.size() > name.size())));
  }
  if (absl::EndsWith(name, ".py")) name.remove_suffix(3);
  return std::string(name);
}

std::string PythonFunction(absl::string_view function) {
  const size_t local = function.rfind("<locals>.");
  return std::string(local == absl::string_view::npos ? function : function.substr(local + 9));
}

// The interpreter's own functions that wait, as the program calls them.
std::string BuiltIn(absl::string_view function) {
  struct Known {
    absl::string_view function, name;
  };
  // clang-format off
  static constexpr Known kKnown[] = {
      {"lock_PyThread_acquire_lock", "lock.acquire"}, {"rlock_acquire", "RLock.acquire"},
      {"time_sleep", "time.sleep"},                   {"pysleep", "time.sleep"},
      {"builtin_input", "input"},                     {"sock_recv", "socket.recv"},
      {"sock_connect", "socket.connect"},             {"os_waitpid", "os.waitpid"},
      {"select_select", "select.select"},             {"select_poll_poll", "poll"},
      {"gc_collect_main", "garbage collection"},      {"gc_collect", "gc.collect"},
      {"os_fsync", "os.fsync"},                       {"fcntl_flock", "fcntl.flock"},
      {"fcntl_lockf", "fcntl.lockf"},                 {"os_read", "os.read"},
      {"os_open", "os.open"},
      // A stripped interpreter shows only what it has called.
      {"PyThread_acquire_lock_timed", "lock.acquire"},
      {"clock_nanosleep", "time.sleep"},              {"wait4", "os.waitpid"},
      {"flock", "fcntl.flock"},                       {"recv", "socket.recv"},
      {"fsync", "os.fsync"},                          {"poll", "poll"},
      {"read", "file.read"},                          {"write", "file.write"},
  };
  // clang-format on
  if (!absl::ConsumePrefix(&function, "__libc_")) absl::ConsumePrefix(&function, "__");
  for (const Known& known : kKnown) {
    if (function == known.function) return std::string(known.name);
  }
  return "";
}

bool IsUsefulNative(const v1::Frame& frame, const std::string& name) {
  if (frame.interpreter() || name.empty() || name.size() > kLongName) return false;
  // The library's own wrappers are in every call of NCCL.
  return !StartsWithAny(
      name, {"pybind11", "_Py", "Py", "cfunction", "method_vectorcall", "__", "rollcall::"});
}

// Libraries make small functions from texts: the line that called one is the program's.
bool IsOfAText(const v1::Frame& frame) { return frame.python() && frame.file() == "<string>"; }

// The function of a library that the frame at `user` has called, empty if none has a name for
// people. Frames are in the order of the stack, innermost first.
std::string CalledFrom(const v1::ThreadStack& thread, int user) {
  const bool from_python = thread.frames(user).python();
  std::string native;
  for (int i = user - 1; i >= 0; --i) {
    const v1::Frame& frame = thread.frames(i);
    const std::string name = ShortFunction(frame);
    if (frame.python()) {
      if (frame.file() == kOwnPythonFile || IsDull(frame.function()) || IsOfAText(frame)) continue;
      return name;
    }
    const std::string built_in = from_python ? BuiltIn(frame.function()) : "";
    if (!built_in.empty()) native = built_in;
    if (native.empty() && IsUsefulNative(frame, name)) native = name;
  }
  return native;
}

std::string PlaceOf(const v1::Frame& frame) {
  const std::string function = frame.python() ? frame.function() : ShortFunction(frame);
  if (frame.file().empty()) return absl::StrCat(frame.module(), " in ", function);
  if (frame.line() <= 0) return absl::StrCat(frame.file(), " in ", function);
  return absl::StrCat(frame.file(), ":", frame.line(), " in ", function);
}

// The folder of the libraries that belong to the interpreter, such as
// "/home/x/miniconda3/envs/y/lib/"; empty if the stack does not show the interpreter.
std::string FolderOfInterpreter(const v1::ThreadStack& thread) {
  for (const v1::Frame& frame : thread.frames()) {
    absl::string_view path = frame.module();
    if (!frame.interpreter() || !absl::StrContains(path, '/')) continue;
    path.remove_suffix(BaseName(path).size());
    if (!absl::ConsumeSuffix(&path, "bin/") && !absl::ConsumeSuffix(&path, "lib/")) continue;
    return absl::StrCat(path, "lib/");
  }
  return "";
}

int FindProgramFrame(const v1::ThreadStack& thread) {
  const std::string folder = FolderOfInterpreter(thread);
  int of_text = -1, of_module = -1;
  for (int i = 0; i < thread.frames_size(); ++i) {
    const v1::Frame& frame = thread.frames(i);
    if (IsLibraryFrame(frame)) continue;
    if (frame.python() && !IsOfAText(frame)) return i;
    if (!frame.python() && frame.line() > 0 &&
        (folder.empty() || !absl::StartsWith(frame.module(), folder))) {
      return i;
    }
    // Libraries lie anywhere, and seldom have lines. A line of the program shows more.
    int* const first = frame.python() ? &of_text : &of_module;
    if (*first < 0) *first = i;
  }
  return of_module >= 0 ? of_module : of_text;
}

std::string FunctionsOf(const v1::ThreadStack& thread) {
  std::string text = " ";
  size_t count = 0;
  for (const v1::Frame& frame : thread.frames()) {
    std::string name = frame.python() ? absl::StrCat(PythonModule(frame.file()), ".",
                                                     PythonFunction(frame.function()))
                                      : ShortFunction(frame);
    if (name.empty() || ++count > kMostFunctions) continue;
    std::replace(name.begin(), name.end(), ' ', '_');
    absl::StrAppend(&text, name, " ");
  }
  return text;
}

CodeBlock ToBlock(const v1::CodeBlock& block) {
  CodeBlock found;
  found.first = block.first();
  found.last = block.last();
  found.skips_at = block.skips_at();
  found.ends_at = block.ends_at();
  found.is_periodic = block.is_periodic();
  found.decides_at = block.decides_at();
  if (block.kind() == v1::CodeBlock::CONDITION) found.kind = CodeBlock::Kind::kCondition;
  if (block.kind() == v1::CodeBlock::HANDLER) found.kind = CodeBlock::Kind::kHandler;
  return found;
}

ProgramFrame ToProgramFrame(const v1::Frame& frame) {
  ProgramFrame found;
  found.function = CutText(frame.python() ? frame.function() : ShortFunction(frame), limits::kName);
  found.file = CutText(frame.file().empty() ? frame.module() : frame.file(), limits::kSite);
  found.line = frame.line();
  found.has_source = frame.has_source();
  found.returns_at = frame.returns_at();
  for (const v1::CodeBlock& block : frame.blocks()) {
    if (found.blocks.size() < kMostCodeBlocks) found.blocks.push_back(ToBlock(block));
  }
  return found;
}

// Returns the frames, the outermost first; of a deep stack the outermost ones, and the innermost.
std::vector<ProgramFrame> ProgramFrames(const v1::ThreadStack& thread) {
  std::vector<ProgramFrame> frames;
  for (int i = thread.frames_size() - 1; i >= 0; --i) {
    if (IsLibraryFrame(thread.frames(i))) continue;
    if (frames.size() == kMostProgramFrames) frames.pop_back();
    frames.push_back(ToProgramFrame(thread.frames(i)));
  }
  frames.shrink_to_fit();
  return frames;
}

EndKind ToEndKind(const std::string& kind) {
  if (kind == "pipe") return EndKind::kPipe;
  if (kind == "socket") return EndKind::kSocket;
  return kind == "process" ? EndKind::kProcess : EndKind::kNone;
}

EndKind EndInKernel(const std::string& wait_channel) {
  if (HasWait(wait_channel, waits::kPipeInKernel)) return EndKind::kPipe;
  return HasWait(wait_channel, waits::kSocketInKernel) ? EndKind::kSocket : EndKind::kNone;
}

// A function of the program that one of PyTorch's calls has called. Only a handler of a signal
// comes there; a process group that is written in Python has a method of the call's name.
bool IsInASignalsHandler(const v1::ThreadStack& thread) {
  const v1::Frame* inner = nullptr;  // the Python frame before
  for (const v1::Frame& frame : thread.frames()) {
    if (!frame.python()) continue;
    const bool is_call = PythonModule(frame.file()) == "distributed_c10d" &&
                         !absl::StartsWith(frame.function(), "_") && IsLibraryFrame(frame);
    if (is_call && inner != nullptr && !IsLibraryFrame(*inner) &&
        !absl::StrContains(inner->function(), '.') && !IsOfAText(*inner)) {
      return true;
    }
    inner = &frame;
  }
  return false;
}

StackPlace PlaceIn(const v1::ThreadStack& thread, int frame) {
  StackPlace place;
  if (frame >= 0) {
    place.at = PlaceOf(thread.frames(frame));
    place.inside = CalledFrom(thread, frame);
  }
  place.sleeps = thread.state() == "S" || thread.state() == "D";
  place.functions = FunctionsOf(thread);
  if (IsInASignalsHandler(thread)) absl::StrAppend(&place.functions, kSignalInACall, " ");
  place.program = ProgramFrames(thread);
  place.handles = {thread.handles().type(), thread.handles().text(), thread.handles().at()};
  place.other_end.assign(thread.other_end().pids().begin(), thread.other_end().pids().end());
  place.end = ToEndKind(thread.other_end().kind());
  if (place.end == EndKind::kNone) place.end = EndInKernel(thread.wait_channel());
  place.key = thread.awaited_key();
  return place;
}

bool HasAnswered(const v1::ProcessStack& stack, int32_t pid) {
  return std::any_of(stack.threads().begin(), stack.threads().end(), [pid](const auto& thread) {
    const auto& called = thread.other_end().called();
    return std::find(called.begin(), called.end(), pid) != called.end();
  });
}

bool IsChild(const v1::ProcessStack& stack, int32_t pid) {
  return std::any_of(stack.children().begin(), stack.children().end(),
                     [pid](const v1::ChildProcess& child) { return child.pid() == pid; });
}

// A service that the process has started, and that has called it, may bring it requests.
bool IsClient(const v1::ProcessStack& stack, int32_t pid) {
  const auto& children = stack.children();
  return !HasAnswered(stack, pid) &&
         std::any_of(children.begin(), children.end(), [pid](const v1::ChildProcess& child) {
           return child.pid() == pid && child.own_session();
         });
}

// What a child writes or reads does not belong to another rank.
void TellChildren(const v1::ProcessStack& stack, StackPlace* place) {
  std::vector<int32_t>& pids = place->other_end;
  const bool is_socket = place->end == EndKind::kSocket;
  const auto others = std::remove_if(pids.begin(), pids.end(), [&](int32_t pid) {
    return IsChild(stack, pid) && !(is_socket && IsClient(stack, pid));
  });
  if (others != pids.end()) absl::StrAppend(&place->functions, kPipeOfAChild, " ");
  pids.erase(others, pids.end());
}

const v1::ThreadStack* FindThread(const v1::ProcessStack& stack, int32_t tid) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (thread.tid() == tid) return &thread;
  }
  return nullptr;
}

StackPlace FindLine(const v1::ProcessStack& stack) {
  for (const int32_t tid : stack.calling_tids()) {
    const v1::ThreadStack* calling = FindThread(stack, tid);
    const int frame = calling == nullptr ? -1 : FindProgramFrame(*calling);
    if (frame >= 0) return PlaceIn(*calling, frame);
  }
  const v1::ThreadStack* main = FindThread(stack, stack.pid());
  if (main != nullptr && FindProgramFrame(*main) >= 0) {
    return PlaceIn(*main, FindProgramFrame(*main));
  }
  for (const v1::ThreadStack& thread : stack.threads()) {
    const int frame = FindProgramFrame(thread);
    if (frame >= 0) return PlaceIn(thread, frame);
  }
  return main == nullptr ? StackPlace() : PlaceIn(*main, -1);
}

bool IsInACall(const ThreadPlace& thread) {
  const std::string& functions = thread.place.functions;
  return HasWait(functions, waits::kCollective) || HasWait(functions, waits::kGpu) ||
         absl::StrContains(functions, "Memcpy");
}

}  // namespace

bool IsLibraryFrame(const v1::Frame& frame) {
  if (frame.function().empty()) return true;
  if (frame.python()) {
    return frame.file().empty() || IsPythonLibraryFile(frame.file().c_str());
  }
  return frame.interpreter() || StartsTheProgram(frame.function()) ||
         IsLibraryModule(frame.module()) || IsLibrarySource(frame.file());
}

bool RunsTheProgram(const v1::ThreadStack& thread) { return FindProgramFrame(thread) >= 0; }

std::string ShortFunction(const v1::Frame& frame) {
  if (!frame.python()) return ShortNative(frame.function());
  const std::string function = PythonFunction(frame.function());
  if (absl::StrContains(function, '.')) return function;  // has its class
  return absl::StrCat(PythonModule(frame.file()), ".", function);
}

std::vector<ThreadPlace> FindThreadPlaces(const v1::ProcessStack& stack) {
  std::vector<ThreadPlace> places;
  for (const v1::ThreadStack& thread : stack.threads()) {
    const int frame = FindProgramFrame(thread);
    if (frame < 0) continue;
    places.push_back({static_cast<uint32_t>(thread.tid()), thread.name(), PlaceIn(thread, frame)});
    TellChildren(stack, &places.back().place);
  }
  std::stable_partition(places.begin(), places.end(), IsInACall);
  if (places.size() > limits::kThreadPlaces) places.resize(limits::kThreadPlaces);
  return places;
}

StackPlace PlaceOfThread(const v1::ThreadStack& thread) {
  return PlaceIn(thread, FindProgramFrame(thread));
}

std::vector<uint32_t> FindAwaitedTids(const v1::ProcessStack& stack) {
  std::vector<uint32_t> tids;
  for (const v1::ThreadStack& thread : stack.threads()) {
    const bool is_awaited =
        std::any_of(thread.frames().begin(), thread.frames().end(), [](const v1::Frame& frame) {
          return absl::StrContains(frame.function(), "autograd::Engine::thread_");
        });
    if (is_awaited) tids.push_back(static_cast<uint32_t>(thread.tid()));
  }
  return tids;
}

StackPlace FindPlace(const v1::ProcessStack& stack) {
  StackPlace place = FindLine(stack);
  TellChildren(stack, &place);
  for (const v1::ThreadStack& thread : stack.threads()) {
    const bool is_named = thread.tid() == stack.pid() && RoleOfProcess(thread.name())[0] != '\0';
    if (is_named) absl::StrAppend(&place.functions, thread.name(), " ");
  }
  return place;
}

}  // namespace rollcall
