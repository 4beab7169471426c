// SPDX-License-Identifier: Apache-2.0
// A libucc.so.1 for tests: UCC's functions, with nothing behind them. A posted call is done after
// as many calls of ucc_context_progress() as STUB_PROGRESS says (1). The function whose name is in
// STUB_ENDS_IN ends the process: when it is called for the STUB_ENDS_AT-th time (1). A call with a
// callback is done at once, and calls it inside the post.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "interpose/ucc_api.h"

namespace {

struct Request : UccRequest {
  int polls = 0;
  bool calls_back = false;
};
struct Team {
  bool tested = false;
  uint32_t size = 0;
  uint64_t ep = 0;
};

std::vector<Request*> posted;

// With STUB_REUSES all requests have one address, at the beginning of a page, and a call is done
// when the program writes so into its request.
bool Reuses() { return getenv("STUB_REUSES") != nullptr; }
Request* NewRequest() {
  alignas(4096) static char page[4096];
  return Reuses() ? new (page) Request : new Request;
}
void (*callback)() = nullptr;

int Setting(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? 1 : atoi(value);
}

int Call(const char* name) {
  static int calls = 0;
  const char* end = getenv("STUB_ENDS_IN");
  if (end != nullptr && strcmp(end, name) == 0 && ++calls == Setting("STUB_ENDS_AT")) _exit(0);
  return kUccOk;
}

int Post(UccRequest* request) {
  auto* own = static_cast<Request*>(request);
  if (own->calls_back) {
    own->status = kUccOk;
    callback();
    return kUccOk;
  }
  own->status = kUccInProgress;
  own->polls = 0;
  if (!Reuses()) posted.push_back(own);
  return kUccOk;
}

}  // namespace

extern "C" {
void stub_ucc_set_callback(void (*to_call)()) { callback = to_call; }
void ucc_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = static_cast<unsigned>(Setting("STUB_VERSION"));
  *minor = *release = 0;
}
int ucc_context_create(void*, const UccContextParams*, void*, void** context) {
  *context = new int(0);
  return Call("ucc_context_create");
}
int ucc_context_progress(void*) {
  for (Request* request : posted) {
    if (++request->polls == Setting("STUB_PROGRESS")) request->status = kUccOk;
  }
  return Call("ucc_context_progress");
}
int ucc_context_destroy(void*) { return Call("ucc_context_destroy"); }
int ucc_team_create_post(void**, uint32_t, const UccTeamParams*, void** team) {
  *team = new Team;
  return Call("ucc_team_create_post");
}
int ucc_team_create_test(void* team) {
  Call("ucc_team_create_test");
  auto* own = static_cast<Team*>(team);
  if (own->tested) return kUccOk;
  own->tested = true;
  return kUccInProgress;
}
int ucc_team_create_from_parent(uint64_t ep, uint32_t included, void*, void** team) {
  *team = included == 0 ? nullptr : new Team{false, 2, ep / 2};
  return Call("ucc_team_create_from_parent");
}
int ucc_team_get_attr(void* team, UccTeamAttr* attr) {
  attr->size = static_cast<Team*>(team)->size;
  attr->ep = static_cast<Team*>(team)->ep;
  return kUccOk;
}
int ucc_team_destroy(void*) { return Call("ucc_team_destroy"); }
int ucc_collective_init(UccCollArgs* args, UccRequest** request, void*) {
  auto* own = NewRequest();
  own->status = kUccInitialized;
  own->calls_back = (args->mask & kUccCollCallback) != 0;
  *request = own;
  return Call("ucc_collective_init");
}
int ucc_collective_post(UccRequest* request) {
  Call("ucc_collective_post");
  return getenv("STUB_REFUSES") == nullptr ? Post(request) : kUccNotSupported;
}
int ucc_collective_triggered_post(void*, UccEvent* event) { return Post(event->request); }
int ucc_collective_init_and_post(UccCollArgs* args, UccRequest** request, void* team) {
  ucc_collective_init(args, request, team);
  return Post(*request);
}
int ucc_collective_finalize(UccRequest* request) {
  Call("ucc_collective_finalize");
  for (size_t i = 0; i < posted.size(); ++i) {
    if (posted[i] == request) posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  if (!Reuses()) delete static_cast<Request*>(request);
  return kUccOk;
}
}
