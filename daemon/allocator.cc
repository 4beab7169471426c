// SPDX-License-Identifier: Apache-2.0
// Settings of jemalloc, the allocator of rollcalld. jemalloc reads them before main() (jemalloc(3),
// TUNING). The environment variable MALLOC_CONF has priority.
//
// A daemon that thousands of agents join trims the records of the first ones. jemalloc gives such
// memory back; glibc's allocator held up to twice the memory in use.

extern "C" {
// Few arenas: memory that one thread frees serves the others. The process does not wait for the
// system to take memory back: a thread of jemalloc does that.
__attribute__((visibility("default"), used)) const char* malloc_conf =
    "narenas:8,background_thread:true,dirty_decay_ms:3000,muzzy_decay_ms:0";
}
