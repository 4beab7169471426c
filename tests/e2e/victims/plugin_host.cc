// SPDX-License-Identifier: Apache-2.0
// Loads a training program (plugin.cc) that calls its own NCCL and bypasses preloaded libraries.
#include <dlfcn.h>
#include <stdio.h>

int main() {
  void* plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL | PLUGIN_FLAGS);
  void* run = plugin == nullptr ? nullptr : dlsym(plugin, "RunTraining");
  if (run == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)()>(run)();
}
