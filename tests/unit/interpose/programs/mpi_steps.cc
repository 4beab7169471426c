// SPDX-License-Identifier: Apache-2.0
// A program with messages and collectives of a stub of MPI, whose arguments are its steps, for
// tests of the preloaded library. A step is a word, or WORD=NUMBER,NUMBER. A sign before it sets
// what an error handler of the program does in its call: "!" throws, "^" leaves it by longjmp(),
// "?" returns, and so does the call, with an error.
//
//   send, recv, probe, iprobe, isend, irecv=TAG,PEER    with the other rank, or a tag and a peer
//   sendinit, barrierinit, start                        persistent requests
//   isends=N, irecvs=N, sendinits=N                     N of them; receives from any source
//   wait, test, cancel                                  the newest request; "waitall" all
//   dup, free                                           a communicator; the calls go on in the
//   world overtaken         a receive ends while another thread waits for the next message nested
//   a tool makes a persistent send on the newest communicator inside of a send hiddenwait        a
//   tool waits for the newest request inside of a send deep              makes a barrier beneath a
//   function with much on its stack end               ends the process where it would call next
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "tests/support/stub_mpi.h"
#include "tests/unit/interpose/programs/steps.h"

namespace {

constexpr int kWorld = MPI_COMM_WORLD;
MPI_Status* const kIgnored = reinterpret_cast<MPI_Status*>(1);

int buffer = 0;
int result = 0;  // of the step's call
int created = kWorld;
std::vector<int> requests;

int* NewRequest() {
  requests.push_back(MPI_REQUEST_NULL);
  return &requests.back();
}

void Receive(const Numbers& n) {
  result = MPI_Recv(&buffer, 1, MPI_INT, At(n, 1, 1), At(n, 0, 7), kWorld, kIgnored);
}
void OpenReceive(int tag, int from) {
  result = MPI_Irecv(&buffer, 1, MPI_INT, from, tag, kWorld, NewRequest());
}
void OpenSend(int tag, int to) {
  result = MPI_Isend(&buffer, 1, MPI_INT, to, tag, kWorld, NewRequest());
}
void DescribeSend(int comm) {
  result = MPI_Send_init(&buffer, 1, MPI_INT, 1, 7, comm, NewRequest());
}

void WaitForAll() {
  std::vector<MPI_Status> statuses(requests.size(), MPI_Status{0, 0, 55, 55, 0});
  result = MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
  requests.clear();
}

// The main thread's receive returns once the other thread waits for the next message.
std::atomic<bool> is_overtaken{false};
thread_local bool is_other = false;
void LetOvertake() {
  if (is_other) {
    is_overtaken = true;
    for (;;) pause();
  }
  std::thread([] {
    is_other = true;
    Receive({});
  }).detach();
  while (!is_overtaken) usleep(100);
}

__attribute__((noinline)) void BarrierBeneath() {
  volatile char room[8192];
  room[0] = 1;
  result = MPI_Barrier(kWorld);
  room[1] = room[0];
}

const std::map<std::string, std::function<void(const Numbers&)>> kSteps = {
    {"send",
     [](const Numbers& n) {
       result = MPI_Send(&buffer, 1, MPI_INT, At(n, 1, 1), At(n, 0, 7), kWorld);
     }},
    {"recv", &Receive},
    {"probe", [](const Numbers&) { result = MPI_Probe(1, 7, kWorld, kIgnored); }},
    {"iprobe",
     [](const Numbers&) {
       int flag = 0;
       result = MPI_Iprobe(1, 7, kWorld, &flag, kIgnored);
     }},
    {"isend", [](const Numbers& n) { OpenSend(At(n, 0, 7), At(n, 1, 1)); }},
    {"irecv", [](const Numbers& n) { OpenReceive(At(n, 0, 7), At(n, 1, 1)); }},
    {"isends",
     [](const Numbers& n) {
       for (int i = 0; i < n[0]; ++i) OpenSend(7, 1);
     }},
    {"irecvs",
     [](const Numbers& n) {
       for (int i = 0; i < n[0]; ++i) OpenReceive(7, MPI_ANY_SOURCE);
     }},
    {"sendinit", [](const Numbers&) { DescribeSend(kWorld); }},
    {"sendinits",
     [](const Numbers& n) {
       for (int i = 0; i < n[0]; ++i) DescribeSend(kWorld);
     }},
    {"barrierinit",
     [](const Numbers&) { result = MPI_Barrier_init(kWorld, MPI_INFO_NULL, NewRequest()); }},
    {"start", [](const Numbers&) { result = MPI_Start(&requests.back()); }},
    {"cancel", [](const Numbers&) { result = MPI_Cancel(&requests.back()); }},
    {"wait", [](const Numbers&) { result = MPI_Wait(&requests.back(), kIgnored); }},
    {"waitall", [](const Numbers&) { WaitForAll(); }},
    {"test",
     [](const Numbers&) {
       int flag = 0;
       stub_tests_fail = true;
       result = MPI_Test(&requests.back(), &flag, kIgnored);
     }},
    {"barrier", [](const Numbers&) { result = MPI_Barrier(kWorld); }},
    {"ibarrier", [](const Numbers&) { result = MPI_Ibarrier(kWorld, NewRequest()); }},
    {"deep", [](const Numbers&) { BarrierBeneath(); }},
    {"dup", [](const Numbers&) { result = MPI_Comm_dup(kWorld, &created); }},
    {"free", [](const Numbers&) { result = MPI_Comm_free(&created); }},
    {"overtaken",
     [](const Numbers&) {
       stub_calls = &LetOvertake;
       Receive({});
     }},
    {"nested",
     [](const Numbers&) {
       stub_calls = [] {
         stub_calls = nullptr;
         DescribeSend(created);
       };
       result = MPI_Send(&buffer, 1, MPI_INT, 1, 7, kWorld);
     }},
    {"hiddenwait",
     [](const Numbers&) {
       stub_calls = [] {
         stub_calls = nullptr;
         result = MPI_Wait(&requests.back(), kIgnored);
       };
       result = MPI_Send(&buffer, 1, MPI_INT, 1, 7, kWorld);
     }},
    {"end", [](const Numbers&) { stub_calls = [] { _exit(0); }; }},
};

constexpr int kError = 15;
jmp_buf outside;

// Whether the step's call came to the end that it should.
bool TakeTo(char sign, const Step& step) {
  switch (sign) {
    case '!':
      stub_calls = [] { throw std::runtime_error("of the handler"); };
      break;
    case '^':
      stub_calls = [] { longjmp(outside, 1); };
      break;
    case '?':
      stub_result = kError;
      break;
    default:
      break;
  }
  if (setjmp(outside) != 0) return sign == '^';
  try {
    kSteps.at(step.word)(step.numbers);
    return result == (sign == '?' ? kError : 0) && sign != '!' && sign != '^';
  } catch (const std::runtime_error&) {
    return sign == '!';
  }
}

bool Take(const char* text) {
  const bool has_sign = strchr("!^?", text[0]) != nullptr;
  const bool is_right = TakeTo(has_sign ? text[0] : ' ', ReadStep(has_sign ? text + 1 : text));
  if (has_sign) stub_calls = nullptr;
  stub_result = 0;
  return is_right;
}

}  // namespace

int main(int count, char** steps) {
  MPI_Init(&count, &steps);
  for (int i = 1; i < count; ++i) {
    if (Take(steps[i])) continue;
    fprintf(stderr, "the step %s went wrong\n", steps[i]);
    return 1;
  }
  _exit(0);
}
