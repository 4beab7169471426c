// SPDX-License-Identifier: Apache-2.0
// Shows Abseil's locks to ThreadSanitizer. The distribution's Abseil is built without it, so
// ThreadSanitizer calls all that an absl::Mutex guards a race. The program's definitions here replace the
// library's, for the program and for the libraries that it uses, and call them.
//
// Lock(), Unlock() and AwaitWithTimeout() are all that Rollcall and gRPC's inline code use. Only their
// calls are shown: gRPC's libraries wait on these locks in other ways, too, which would make half of the
// calls wrong.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"

// From the linker: the begin and the end of the program's code.
extern "C" char __executable_start, etext;

#define ROLLCALL_TEXT(name) #name
#define ROLLCALL_NAME(name) ROLLCALL_TEXT(name)

namespace rollcall {
namespace {

// A function of absl::Mutex, in the library. `name` is its mangled name and arguments.
template <typename Result, typename... Arguments>
class LibraryFunction {
 public:
  explicit LibraryFunction(const char* name) {
    const std::string space = ROLLCALL_NAME(ABSL_OPTION_INLINE_NAMESPACE_NAME);
    const std::string symbol = "_ZN4absl" + std::to_string(space.size()) + space + "5Mutex" + name;
    function_ =
        reinterpret_cast<Result (*)(absl::Mutex*, Arguments...)>(dlsym(RTLD_NEXT, symbol.c_str()));
    if (function_ != nullptr) return;
    fprintf(stderr, "Abseil has no %s: link it as a shared library\n", symbol.c_str());
    abort();
  }
  Result operator()(absl::Mutex* mutex, Arguments... arguments) const {
    return function_(mutex, arguments...);
  }

 private:
  Result (*function_)(absl::Mutex*, Arguments...) = nullptr;
};

// Whether this code is the program's own, and not a shared library's.
bool IsOfProgram(const void* code) {
  const char* const at = static_cast<const char*>(code);
  return at >= &__executable_start && at < &etext;
}

}  // namespace
}  // namespace rollcall

// What libraries without instrumentation do with their own memory. They order it by means that
// ThreadSanitizer does not see.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libcpp-httplib.so\n"
         "called_from_lib:libspdlog.so\n"
         // The library locks the sink. The formatter is inline code of the program.
         "race:spdlog::details::full_formatter::format\n"
         // httplib::Client::stop() locks in its own code, and jumps into the unlock at its end.
         "mutex:rollcall::HttpWatchdog::Watch\n"
         // spdlog::set_level() does so, too.
         "mutex:limited_log_test.cc\n";
}

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const rollcall::LibraryFunction<void> lock("4LockEv");
  const bool is_shown = rollcall::IsOfProgram(__builtin_return_address(0));
  if (is_shown) __tsan_mutex_pre_lock(this, 0);
  lock(this);
  if (is_shown) __tsan_mutex_post_lock(this, 0, 0);
}

void Mutex::Unlock() {
  static const rollcall::LibraryFunction<void> unlock("6UnlockEv");
  const bool is_shown = rollcall::IsOfProgram(__builtin_return_address(0));
  if (is_shown) __tsan_mutex_pre_unlock(this, 0);
  unlock(this);
  if (is_shown) __tsan_mutex_post_unlock(this, 0);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const rollcall::LibraryFunction<bool, const Condition&, Duration> await(
      "16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  const bool is_shown = rollcall::IsOfProgram(__builtin_return_address(0));
  if (is_shown) {
    __tsan_mutex_pre_unlock(this, 0);
    __tsan_mutex_post_unlock(this, 0);
    __tsan_mutex_pre_lock(this, 0);
  }
  const bool is_met = await(this, condition, timeout);
  if (is_shown) __tsan_mutex_post_lock(this, 0, 0);
  return is_met;
}

ABSL_NAMESPACE_END
}  // namespace absl
