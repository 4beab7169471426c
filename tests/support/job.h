// SPDX-License-Identifier: Apache-2.0
// Helpers for test programs that are ranks of a job: the rank's number, the shared
// unique id, and checks that end the program with file and line.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#define CHECK_CUDA(call)                                            \
  do {                                                              \
    const cudaError_t check_result = (call);                        \
    if (check_result != cudaSuccess) {                              \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
              cudaGetErrorString(check_result));                    \
      exit(1);                                                      \
    }                                                               \
  } while (0)

#define CHECK_NCCL(call)                                            \
  do {                                                              \
    const ncclResult_t check_result = (call);                       \
    if (check_result != ncclSuccess) {                              \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
              ncclGetErrorString(check_result));                    \
      exit(1);                                                      \
    }                                                               \
  } while (0)

inline int EnvironmentNumber(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr) {
    fprintf(stderr, "%s is not set: start this program with tests/ranks -n N\n", name);
    exit(1);
  }
  return atoi(value);
}

inline int JobRank() { return EnvironmentNumber("RANK"); }
inline int JobSize() { return EnvironmentNumber("WORLD_SIZE"); }

// Rank 0 makes a unique id with `make(&id)` and writes it to a file. The other ranks wait for the
// file. `round` distinguishes the ids of several communicators.
template <typename Make>
ncclUniqueId ShareUniqueIdFrom(Make make, int round) {
  const std::string path =
      std::string(getenv("ROLLCALL_TEST_ID_FILE")) + "." + std::to_string(round);
  ncclUniqueId id;
  if (JobRank() == 0) {
    CHECK_NCCL(make(&id));
    const std::string unfinished = path + ".new";
    FILE* file = fopen(unfinished.c_str(), "w");
    if (file == nullptr || fwrite(&id, sizeof(id), 1, file) != 1 || fclose(file) != 0 ||
        rename(unfinished.c_str(), path.c_str()) != 0) {
      perror(path.c_str());
      exit(1);
    }
    return id;
  }
  FILE* file = nullptr;
  while ((file = fopen(path.c_str(), "r")) == nullptr) usleep(1000);
  if (fread(&id, sizeof(id), 1, file) != 1) exit(1);
  fclose(file);
  return id;
}

inline ncclUniqueId ShareUniqueId(int round = 0) {
  return ShareUniqueIdFrom(ncclGetUniqueId, round);
}

// Device memory for `count` elements.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t count) : count_(count) {
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
    CHECK_CUDA(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return data_; }
  size_t count() const { return count_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};
