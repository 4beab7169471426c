// SPDX-License-Identifier: Apache-2.0
// A program that is linked with neither NCCL nor CUDA and asks the dynamic
// linker in the ways that programs do, for tests of the preloaded library. Its
// argument names the way; the exit code is 0 when the linker answered as it does
// without the library. Built without optimisation.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

namespace {

int Fail(int code, const char* what) {
  fprintf(stderr, "library_loaders: %s\n", what);
  return code;
}

void* Nccl() { return dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL); }

// Calls `function` of the plugin, which is loaded as Python loads extensions.
int InPlugin(const char* function, const char* kind = "", int flags = 0) {
  const std::string file = std::string(LIBRARY_PLUGINS) + kind + ".so";
  void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (plugin == nullptr) return Fail(20, dlerror());
  const auto run = reinterpret_cast<int (*)()>(dlsym(plugin, function));
  return run == nullptr ? Fail(21, dlerror()) : run();
}

// An older NCCL must not appear to have a function of a newer one.
int ProbeMissing() {
  void* nccl = Nccl();
  if (nccl == nullptr) return Fail(2, dlerror());
  if (dlsym(nccl, "ncclAllReduce") == nullptr) return Fail(3, "ncclAllReduce is missing");
  if (dlsym(nccl, "ncclCommShrink") != nullptr) return Fail(4, "told of ncclCommShrink");
  const char* error = dlerror();
  if (error == nullptr || strstr(error, "ncclCommShrink") == nullptr) return Fail(5, "dlerror");
  return dlerror() == nullptr ? 0 : Fail(6, "dlerror was not cleared");
}

// dlerror() after a look-up that succeeded is how careful programs check it.
int NoErrorAfterSuccess() {
  void* nccl = Nccl();
  dlerror();
  if (dlsym(nccl, "ncclAllReduce") == nullptr) return Fail(2, "ncclAllReduce is missing");
  const char* error = dlerror();
  return error == nullptr ? 0 : Fail(3, error);
}

int ErrorTextIsKept() {
  if (dlsym(RTLD_DEFAULT, "no_such_symbol_at_all") != nullptr) return 2;
  const char* error = dlerror();
  return error != nullptr && strstr(error, "no_such_symbol_at_all") != nullptr ? 0 : 3;
}

// Names that the library does not wrap keep their addresses.
int OtherNames() {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (dlsym(libc, "getenv") != dlsym(RTLD_DEFAULT, "getenv")) return 2;
  return dlsym(RTLD_NEXT, "getpid") == dlsym(libc, "getpid") ? 0 : 3;
}

// A second NCCL in the process works as without the library.
int SecondNccl() {
  void* first = Nccl();
  void* first_all_reduce = dlsym(first, "ncclAllReduce");
  void* second = dlopen(getenv("SECOND_NCCL"), RTLD_NOW | RTLD_LOCAL);
  if (second == nullptr) return Fail(2, dlerror());
  void* second_all_reduce = dlsym(second, "ncclAllReduce");
  if (second_all_reduce == nullptr || second_all_reduce == first_all_reduce) return 3;
  Dl_info about;
  if (dladdr(second_all_reduce, &about) == 0) return 4;
  return strstr(about.dli_fname, "librollcall.so") == nullptr ? 0 : Fail(5, about.dli_fname);
}

const std::map<std::string, std::function<int()>> kWays = {
    {"linked", [] { return InPlugin("plugin_linked"); }},
    {"default", [] { return InPlugin("plugin_default"); }},
    {"handle", [] { return InPlugin("plugin_handle"); }},
    {"new_namespace", [] { return InPlugin("plugin_new_namespace"); }},
    {"static_in_library", [] { return InPlugin("plugin_linked", "_static"); }},
    {"bound_to_itself", [] { return InPlugin("plugin_linked", "_symbolic"); }},
    {"bound_deeply", [] { return InPlugin("plugin_linked", "", RTLD_DEEPBIND); }},
    {"sees_itself", [] { return InPlugin("plugin_sees_itself"); }},
    {"missing", ProbeMissing},
    {"no_error", NoErrorAfterSuccess},
    {"error_text", ErrorTextIsKept},
    {"other_names", OtherNames},
    {"second", SecondNccl},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = kWays.find(argc > 1 ? argv[1] : "");
  return way == kWays.end() ? Fail(2, "no such way") : way->second();
}
