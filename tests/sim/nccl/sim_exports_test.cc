// SPDX-License-Identifier: Apache-2.0
// Checks the exports of the simulated libnccl.so.2, and that a program can intercept
// its inner calls of public functions, as with the real NCCL.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

int unique_ids = 0, broadcasts = 0;

std::set<std::string> DeclaredFunctions() {
  std::ifstream file(NCCL_HEADER);
  std::stringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  const std::regex declaration("(?:ncclResult_t|const char\\*|void)\\s+(nccl[A-Z]\\w*)\\s*\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

}  // namespace

// The program's own definitions precede the library's.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ++unique_ids;
  return pncclGetUniqueId(id);
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  ++broadcasts;
  return pncclBroadcast(send, recv, count, dtype, root, comm, stream);
}

namespace {

TEST(SimExports, HaveEveryFunctionOfTheHeaderUnderBothNames) {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const std::set<std::string> names = DeclaredFunctions();
  EXPECT_GT(names.size(), 30u);
  for (const std::string& name : names) {
    void* function = dlsym(library, name.c_str());
    EXPECT_NE(function, nullptr) << name;
    EXPECT_EQ(function, dlsym(library, ("p" + name).c_str())) << name;
  }
}

TEST(SimExports, InterposersSeeInnerCalls) {
  int device = 0;
  ncclComm_t comm;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, &device), ncclSuccess);
  EXPECT_EQ(unique_ids, 1);
  void* data = nullptr;
  ASSERT_EQ(ncclMemAlloc(&data, 4), ncclSuccess);
  ASSERT_EQ(ncclBcast(data, 1, ncclFloat, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(broadcasts, 1);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclMemFree(data), ncclSuccess);
}

TEST(SimExports, RanksOfOneProcessReduce) {
  constexpr int kRanks = 4;
  ncclComm_t comms[kRanks];
  float* data[kRanks];
  ASSERT_EQ(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&data[rank]), sizeof(float)), cudaSuccess);
    *data[rank] = static_cast<float>(rank + 1);
    ASSERT_EQ(ncclAllReduce(data[rank], data[rank], 1, ncclFloat, ncclSum, comms[rank], nullptr),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(*data[rank], 10.0f);
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
  }
}

}  // namespace
