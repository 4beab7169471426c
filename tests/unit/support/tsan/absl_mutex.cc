// SPDX-License-Identifier: Apache-2.0
// Shows Abseil's locks to ThreadSanitizer. The distribution's Abseil is built without it, so
// ThreadSanitizer calls all that an absl::Mutex guards a race. The program's definitions here replace the
// library's, for the program and for the libraries that it uses, and call them.
//
// Lock() and Unlock() are all that Rollcall and gRPC's inline code use. Only their calls are shown:
// gRPC's libraries wait on these locks in other ways, too, which would make half of the calls wrong.
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

// A function without arguments of absl::Mutex, in the library.
class LibraryFunction {
 public:
  explicit LibraryFunction(const char* name) {
    const std::string space = ROLLCALL_NAME(ABSL_OPTION_INLINE_NAMESPACE_NAME);
    const std::string symbol =
        "_ZN4absl" + std::to_string(space.size()) + space + "5Mutex" + name + "Ev";
    function_ = reinterpret_cast<void (*)(absl::Mutex*)>(dlsym(RTLD_NEXT, symbol.c_str()));
    if (function_ != nullptr) return;
    fprintf(stderr, "Abseil has no %s: link it as a shared library\n", symbol.c_str());
    abort();
  }
  void operator()(absl::Mutex* mutex) const { function_(mutex); }

 private:
  void (*function_)(absl::Mutex*) = nullptr;
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
         "called_from_lib:libspdlog.so\n";
}

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const rollcall::LibraryFunction lock("4Lock");
  const bool is_shown = rollcall::IsOfProgram(__builtin_return_address(0));
  if (is_shown) __tsan_mutex_pre_lock(this, 0);
  lock(this);
  if (is_shown) __tsan_mutex_post_lock(this, 0, 0);
}

void Mutex::Unlock() {
  static const rollcall::LibraryFunction unlock("6Unlock");
  const bool is_shown = rollcall::IsOfProgram(__builtin_return_address(0));
  if (is_shown) __tsan_mutex_pre_unlock(this, 0);
  unlock(this);
  if (is_shown) __tsan_mutex_post_unlock(this, 0);
}

ABSL_NAMESPACE_END
}  // namespace absl
