// SPDX-License-Identifier: Apache-2.0
// A program with gloo groups of a stub of PyTorch, whose arguments are its steps, for tests of the
// preloaded library. A step is a word, or WORD=NUMBER,NUMBER. "!" before it says that it must throw
// what PyTorch throws, "^" that the program leaves it by longjmp().
//
//   group=RANK,SIZE   makes the default group; "pair=RANK,SIZE" another one with the name "pair",
//                     "by_hand=RANK,SIZE" one with nothing but a prefix around a store
//   finish, fail      end the oldest work; "sent" moves the data of the newest message
//   wait              waits for the newest work or message
//   interrupted       a signal handler on a stack of its own makes calls inside of other ones
//   forked            the child of a fork inside of a call makes a group and a call
//   jump              leaves a monitored barrier, a wait for a key, and the constructor of a group
//   by
//                     longjmp(), and makes an allreduce after each, beneath a function with much on
//                      its stack, which no code may change
//   key, get          wait for keys of a TCPStore (two, of 300 s) and of a FileStore, "long" for
//                     one with a long name, "alike" for one whose name ends alike; "end" ends the
//                     process where it would wait next
//   hold              pauses where it would wait next; "stay" pauses at once
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/stub_torch.h"
#include "tests/unit/interpose/programs/steps.h"

namespace {

using namespace c10d;  // NOLINT(google-build-using-namespace)

ProcessGroupGloo* group = nullptr;
Work* work = nullptr;
StorePtr root(new Store());
StorePtr world(nullptr);

constexpr int32_t kFloat = 6;  // c10::ScalarType

bool Take(const char* step);

Tensors Some(const Numbers& numbers) {
  return {at::Tensor{new at::TensorImpl{At(numbers, 0, 8), kFloat}}};
}

// As torch.distributed makes a group.
void MakeGroup(const std::string& number, const std::string& name, const Numbers& numbers) {
  if (world.get() == nullptr) world = StorePtr(new PrefixStore("default_pg", root));
  const StorePtr own(new PrefixStore(number + "/", world));
  auto* named = new ProcessGroup(own, numbers[0], numbers[1]);
  const StorePtr device(new PrefixStore("cpu/", own));
  group = new ProcessGroupGloo(device, numbers[0], numbers[1], nullptr);
  named->setGroupDesc(name);
}

// As frameworks make one for the ranks of two jobs.
void MakeByHand(const std::string& prefix, const Numbers& numbers) {
  const StorePtr store(new PrefixStore(prefix, root));
  group = new ProcessGroupGloo(store, numbers[0], numbers[1], nullptr);
}

__attribute__((noinline)) void ReduceBeneath(Tensors* tensors) {
  char room[8192];
  static char before[sizeof(room)];
  __asm__ volatile("" : "=m"(room));  // whatever has been there
  memcpy(before, room, sizeof(room));
  __asm__ volatile("" : : "r"(room) : "memory");
  work = group->allreduce(*tensors, {}).get();
  __asm__ volatile("" : "+m"(room) : : "memory");
  if (memcmp(before, room, sizeof(room)) == 0) return;
  fprintf(stderr, "somebody wrote to the program's stack\n");
  exit(1);
}

jmp_buf outside;
void LeaveCall() { longjmp(outside, 1); }

// The step is left where PyTorch would wait.
bool LeaveByJump(const char* step) {
  stub_calls = &LeaveCall;
  if (setjmp(outside) == 0) {
    Take(step);
    return false;
  }
  stub_calls = nullptr;
  return true;
}

void JumpAndReduce() {
  Tensors tensors = Some({});
  for (const char* step : {"monitored", "key", "pair=0,2"}) {
    LeaveByJump(step);
    ReduceBeneath(&tensors);
  }
}

// A signal handler on a stack above and below this one makes a call, while this one is in one.
void Reduce(int) {
  Tensors tensors = Some({});
  stub_calls = nullptr;
  work = group->allreduce(tensors, {}).get();
}
void RaiseSignal() { raise(SIGUSR1); }

void ReduceInHandler(const Numbers&) {
  static char below[65536];
  void* above =
      mmap(nullptr, sizeof(below), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {};
  action.sa_handler = &Reduce;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  std::thread([&] {  // its stack lies below what the kernel maps first
    for (void* where : {static_cast<void*>(below), above}) {
      stack_t stack = {};
      stack.ss_sp = where;
      stack.ss_size = sizeof(below);
      sigaltstack(&stack, nullptr);
      for (const char* step : {"monitored", "allreduce", "send", "recv", "key", "get"}) {
        stub_calls = &RaiseSignal;
        Take(step);
      }
    }
  })
      .join();
}

// The child of a fork from inside of a call makes calls of its own, and returns from that call.
pid_t child = -1;
void Fork() {
  stub_calls = nullptr;
  child = fork();
  if (child != 0) return;
  MakeGroup("7", "of the child", {0, 2});
  Take("allreduce");
}
void ForkInside(const Numbers&) {
  for (const char* step : {"monitored", "allreduce", "send", "key", "pair=0,2"}) {
    stub_calls = &Fork;
    Take(step);
    if (child == 0) _exit(0);
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) exit(1);
  }
}

const std::map<std::string, std::function<void(const Numbers&)>> kSteps = {
    {"group", [](const Numbers& n) { MakeGroup("0", "default_pg", n); }},
    {"nameless", [](const Numbers& n) { MakeGroup("3", "undefined", n); }},
    {"pair", [](const Numbers& n) { MakeGroup("1", "pair", n); }},
    {"by_hand", [](const Numbers& n) { MakeByHand("weights", n); }},
    {"allreduce",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       work = group->allreduce(tensors, {}).get();
     }},
    {"broadcast",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       BroadcastOptions options;
       options.root = At(n, 1, 0);
       work = group->broadcast(tensors, options).get();
     }},
    {"alltoall",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       std::vector<int64_t> outputs = {1}, inputs(static_cast<size_t>(At(n, 0, 1)));
       work = group->alltoall_base(tensors[0], tensors[0], outputs, inputs, {}).get();
     }},
    {"barrier", [](const Numbers&) { work = group->barrier({}).get(); }},
    {"monitored", [](const Numbers&) { group->monitoredBarrier({}, false); }},
    {"send",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       work = group->send(tensors, At(n, 1, 1), At(n, 2, 0)).get();
     }},
    {"recv",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       work = group->recv(tensors, At(n, 1, 1), At(n, 2, 0)).get();
     }},
    {"any",
     [](const Numbers& n) {
       Tensors tensors = Some(n);
       work = group->recvAnysource(tensors, At(n, 1, 0)).get();
     }},
    {"finish", [](const Numbers&) { ProcessGroupGloo::FinishOldest(false); }},
    {"fail", [](const Numbers&) { ProcessGroupGloo::FinishOldest(true); }},
    {"wait", [](const Numbers&) { work->wait(std::chrono::milliseconds(7)); }},
    {"jump", [](const Numbers&) { JumpAndReduce(); }},
    {"interrupted", [](const Numbers& n) { ReduceInHandler(n); }},
    {"forked", [](const Numbers& n) { ForkInside(n); }},
    {"end", [](const Numbers&) { stub_calls = [] { _exit(0); }; }},
    {"hold", [](const Numbers&) { stub_calls = [] { pause(); }; }},
    {"stay", [](const Numbers&) { pause(); }},
    {"key",
     [](const Numbers&) {
       TCPStore().wait({"/saved/step 7", "/other"}, std::chrono::milliseconds(300000));
     }},
    {"get",
     [](const Numbers&) {
       const std::vector<uint8_t> value = FileStore().get("ready");
       if (std::string(value.begin(), value.end()) != "ready") abort();
     }},
    {"long",
     [](const Numbers&) {
       FileStore().wait({std::string(500, 'x') + "\n/the end"}, std::chrono::milliseconds(0));
     }},
    {"alike",
     [](const Numbers&) {
       FileStore().wait({std::string(500, 'y') + "\n/the end"}, std::chrono::milliseconds(0));
     }},
    {"destroy", [](const Numbers&) { delete group; }},
};

bool Take(const char* text) {
  if (text[0] == '^') return LeaveByJump(text + 1);
  const bool must_throw = text[0] == '!';
  const auto [word, numbers] = ReadStep(must_throw ? text + 1 : text);
  stub_throws = must_throw && word != "alltoall";
  try {
    kSteps.at(word)(numbers);
    return !must_throw;
  } catch (const std::runtime_error& error) {
    return must_throw && strcmp(error.what(), "the stub throws") == 0;
  } catch (const std::invalid_argument& error) {
    return must_throw && word == "alltoall";
  }
}

}  // namespace

int main(int count, char** steps) {
  for (int i = 1; i < count; ++i) {
    if (Take(steps[i])) continue;
    fprintf(stderr, "the step %s went wrong\n", steps[i]);
    return 1;
  }
  return 0;
}
