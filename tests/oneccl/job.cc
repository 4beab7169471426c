// SPDX-License-Identifier: Apache-2.0
// A job of three ranks on oneCCL's C++ interface, on the CPU, for the tests of real oneCCL.
//
//   job PROGRAM FOLDER       FOLDER is empty at the start, and is where the ranks find each other
//
// It starts itself once for each rank, and exits as the first rank does that fails. "hangs:
// PROGRAM" is where a culprit of that program stands.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <oneapi/ccl.hpp>
#include <string>
#include <vector>

namespace {

constexpr int size = 3;
const char* const own_rank = getenv("RANK");  // nullptr in the process that starts the ranks
const int rank = own_rank == nullptr ? -1 : atoi(own_rank);
const bool is_culprit = rank == 2;

std::vector<float> from(1024, 1), to(4096);

// What a program does between two looks at its event.
const std::map<std::string, void (*)()> pauses = {
    {"tests", [] { usleep(1000); }},
    {"naps", [] { usleep(1); }},
    {"spins", [] {}},
};

std::shared_ptr<ccl::kvs> FindStore(const std::string& folder) {
  const std::string path = folder + "/address", draft = folder + "/draft";
  if (rank == 0) {
    auto store = ccl::create_main_kvs();
    const auto address = store->get_address();
    std::ofstream(draft).write(address.data(), address.size());
    rename(draft.c_str(), path.c_str());
    return store;
  }
  while (access(path.c_str(), F_OK) != 0) usleep(10000);
  ccl::kvs::address_type address;
  std::ifstream(path).read(address.data(), address.size());
  return ccl::create_kvs(address);
}

ccl::event AllReduce(const ccl::communicator& comm, size_t count = 1024) {
  return ccl::allreduce(from.data(), to.data(), count, ccl::reduction::sum, comm);
}

// A loop of training as it should be: all kinds of calls, of which some overlap.
void Step(const ccl::communicator& comm) {
  const auto kFloat = ccl::datatype::float32;
  const std::vector<size_t> counts(size, 8);
  AllReduce(comm).wait();
  ccl::allreduce(from.data(), to.data(), 64, kFloat, ccl::reduction::max, comm).wait();
  ccl::broadcast(to.data(), 16, 0, comm).wait();
  ccl::reduce(from.data(), to.data(), 16, ccl::reduction::sum, 1, comm).wait();
  ccl::allgatherv(from.data(), 8, to.data(), counts, comm).wait();
  ccl::alltoall(from.data(), to.data(), 8, comm).wait();
  ccl::alltoallv(from.data(), counts, to.data(), counts, comm).wait();
  ccl::reduce_scatter(from.data(), to.data(), 16, ccl::reduction::sum, comm).wait();
  ccl::barrier(comm);
  std::vector<ccl::event> open;
  open.push_back(AllReduce(comm, 16));
  open.push_back(AllReduce(comm, 32));
  for (ccl::event& event : open) {
    while (!event.test()) usleep(100);
  }
}

void Ring(const ccl::communicator& comm) {
  std::vector<ccl::event> open;
  open.push_back(ccl::send(from.data(), 8, (rank + 1) % size, comm));
  open.push_back(ccl::recv(to.data(), 8, (rank + size - 1) % size, comm));
  for (ccl::event& event : open) event.wait();
}

void SleepForever() {
  while (true) pause();  // hangs: absent, late, tests, naps, spins
}

void Run(const std::string& program, const ccl::communicator& comm) {
  for (int i = 0; i < 2; ++i) Step(comm);
  if (program == "absent" && is_culprit) SleepForever();
  if (program == "another" && is_culprit) {
    ccl::broadcast(to.data(), 16, 0, comm).wait();  // hangs: another
  } else if (pauses.count(program) != 0) {
    if (is_culprit) SleepForever();
    ccl::event event = AllReduce(comm);
    while (!event.test()) pauses.at(program)();
  } else if (program == "ring") {
    for (int i = 0; i < 3; ++i) Ring(comm);
  } else if (program == "unsent" && rank == 1) {
    ccl::recv(to.data(), 8, 0, comm).wait();
  } else if (program == "slow") {
    ccl::event event = AllReduce(comm);
    if (is_culprit) sleep(4);
    event.wait();
  } else if (program == "throws") {
    try {
      ccl::broadcast(to.data(), 16, size + 5, comm).wait();
    } catch (const std::exception& error) {
      printf("caught on rank %d\n", rank);
    }
  }
  AllReduce(comm).wait();
}

// Starts the ranks. The exit code of the first one that fails, else 0.
int StartAll(char** argv) {
  for (int i = 0; i < size; ++i) {
    setenv("RANK", std::to_string(i).c_str(), 1);
    setenv("CCL_LOCAL_RANK", std::to_string(i).c_str(), 1);
    if (fork() == 0) {
      execv("/proc/self/exe", argv);
      _exit(127);
    }
  }
  int code = 0, status = 0;
  while (wait(&status) > 0) {
    if (code == 0 && status != 0) code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  return code;
}

}  // namespace

int main(int, char** argv) {
  if (own_rank == nullptr) return StartAll(argv);
  ccl::init();
  const auto store = FindStore(argv[2]);
  if (std::string(argv[1]) == "late" && is_culprit) SleepForever();
  const auto comm = ccl::create_communicator(size, rank, store);
  Run(argv[1], comm);
  printf("rank %d done: %g\n", rank, to[0]);
}
