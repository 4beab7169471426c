// SPDX-License-Identifier: Apache-2.0
#include "stub_mpi.h"

#include <set>
#include <vector>

void (*stub_calls)() = nullptr;
int stub_result = 0;
bool stub_tests_fail = false;

namespace {

int next_comm = 0x84000000 + 1;
int next_request = 0x98000000 + 1;
std::vector<int> done_requests;  // handles that MPI uses again, the newest first
std::set<int> persistent;

int Call() {
  if (stub_calls != nullptr) stub_calls();
  return stub_result;
}

int Make(int* request) {
  const int result = Call();
  if (result != 0) return result;
  if (done_requests.empty()) {
    *request = next_request++;
  } else {
    *request = done_requests.back();
    done_requests.pop_back();
  }
  return 0;
}

int MakePersistent(int* request) {
  const int result = Call();
  if (result != 0) return result;
  *request = next_request++;
  persistent.insert(*request);
  return 0;
}

// All messages come from rank 1 with tag 7.
void Fill(MPI_Status* status) {
  if (reinterpret_cast<uintptr_t>(status) > 1) *status = {0, 0, 1, 7, 0};
}

void Complete(int* request, MPI_Status* status) {
  Fill(status);
  if (*request == MPI_REQUEST_NULL || persistent.count(*request) != 0) return;
  done_requests.push_back(*request);
  *request = MPI_REQUEST_NULL;
}

}  // namespace

#define STUB(result, name, parameters)                                       \
  extern "C" result name parameters __attribute__((weak, alias("P" #name))); \
  extern "C" result P##name parameters

STUB(int, MPI_Init, (int*, char***)) { return 0; }
STUB(int, MPI_Comm_rank, (int, int* rank)) { return *rank = 0; }
STUB(int, MPI_Comm_size, (int, int* size)) {
  *size = 2;
  return 0;
}
STUB(int, MPI_Comm_test_inter, (int, int* flag)) { return *flag = 0; }
STUB(int, MPI_Type_size, (int, int* size)) {
  *size = 4;
  return 0;
}
STUB(int, MPI_Comm_group, (int, int* group)) {
  *group = 1;
  return 0;
}
STUB(int, MPI_Group_free, (int*)) { return 0; }
STUB(int, MPI_Group_rank, (int, int* rank)) { return *rank = 0; }
STUB(int, MPI_Group_size, (int, int* size)) {
  *size = 2;
  return 0;
}
STUB(int, MPI_Group_translate_ranks, (int, int count, const int* from, int, int* to)) {
  for (int i = 0; i < count; ++i) to[i] = from[i];
  return 0;
}
STUB(int, MPI_Request_get_status, (int, int* flag, MPI_Status*)) { return *flag = 0; }

STUB(int, MPI_Comm_dup, (int, int* created)) {
  const int result = Call();
  if (result == 0) *created = next_comm++;
  return result;
}
STUB(int, MPI_Comm_free, (int*)) { return Call(); }
STUB(int, MPI_Send, (const void*, int, int, int, int, int)) { return Call(); }
STUB(int, MPI_Recv, (void*, int, int, int, int, int, MPI_Status* status)) {
  const int result = Call();
  if (result == 0) Fill(status);
  return result;
}
STUB(int, MPI_Probe, (int, int, int, MPI_Status* status)) {
  Fill(status);
  return Call();
}
STUB(int, MPI_Iprobe, (int, int, int, int* flag, MPI_Status*)) {
  *flag = 0;
  return Call();
}
STUB(int, MPI_Isend, (const void*, int, int, int, int, int, int* request)) { return Make(request); }
STUB(int, MPI_Irecv, (void*, int, int, int, int, int, int* request)) { return Make(request); }
STUB(int, MPI_Send_init, (const void*, int, int, int, int, int, int* request)) {
  return MakePersistent(request);
}
STUB(int, MPI_Start, (int*)) { return Call(); }
STUB(int, MPI_Cancel, (int*)) { return Call(); }
STUB(int, MPI_Wait, (int* request, MPI_Status* status)) {
  const int result = Call();
  if (result == 0) Complete(request, status);
  return result;
}
STUB(int, MPI_Waitall, (int count, int* requests, MPI_Status* statuses)) {
  const int result = Call();
  // As MPI does where an operation has failed: the others are done, and of no status is known
  // whether it was written.
  for (int i = 0; i < count; ++i) {
    const bool wants = result == 0 && reinterpret_cast<uintptr_t>(statuses) > 1;
    Complete(&requests[i], wants ? &statuses[i] : nullptr);
  }
  return result;
}
STUB(int, MPI_Test, (int* request, int* flag, MPI_Status* status)) {
  const int result = Call();
  *flag = result == 0 && !stub_tests_fail ? 1 : 0;
  if (*flag != 0) Complete(request, status);
  return result;
}
STUB(int, MPI_Barrier, (int)) { return Call(); }
STUB(int, MPI_Ibarrier, (int, int* request)) { return Make(request); }
STUB(int, MPI_Barrier_init, (int, int, int* request)) { return MakePersistent(request); }
