// SPDX-License-Identifier: Apache-2.0
// A libtorch_cpu.so for tests: the classes of PyTorch whose methods the library wraps, with the
// same names and arguments and nothing behind them.
//
// A work stays open until FinishOldest(). A wait, a constructor or a call throws if stub_throws is
// set, and calls stub_calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

extern bool stub_throws;
extern void (*stub_calls)();  // nullptr if there is none

namespace at {
struct TensorImpl {
  int64_t numel;
  int32_t dtype;
};
struct Tensor {
  TensorImpl* impl;
};
}  // namespace at

namespace c10 {
namespace detail {
template <typename T>
struct intrusive_target_default_null_type {};
}  // namespace detail

// Passed and returned through memory, as the real one.
template <typename T, typename Null = detail::intrusive_target_default_null_type<T>>
class intrusive_ptr {
 public:
  intrusive_ptr(T* target = nullptr) : target_(target) {}
  intrusive_ptr(const intrusive_ptr& from) : target_(from.target_) {}
  intrusive_ptr& operator=(const intrusive_ptr& from) = default;
  ~intrusive_ptr() {}
  T* get() const { return target_; }
  T* operator->() const { return target_; }

 private:
  T* target_;
};

template <typename T>
struct ArrayRef {
  const T* data;
  size_t size;
};
}  // namespace c10

namespace c10d {
using Tensors = std::vector<at::Tensor>;

struct Store {
  virtual ~Store() = default;
};
using StorePtr = c10::intrusive_ptr<Store>;

struct PrefixStore : Store {
  PrefixStore(std::string prefix, StorePtr store);
};

struct TCPStore : Store {
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);

 private:
  void doWait(c10::ArrayRef<std::string> keys, std::chrono::milliseconds timeout);
};

struct FileStore : Store {
  virtual std::vector<uint8_t> get(const std::string& key);
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout);
};

struct Work {
  virtual ~Work() = default;
  virtual bool wait(std::chrono::milliseconds timeout);
};
using WorkPtr = c10::intrusive_ptr<Work>;

// What the library may read begins each of them.
struct AllreduceOptions {};
struct BroadcastOptions {
  int64_t root = 0;
};
struct BarrierOptions {};
struct AllToAllOptions {};

struct ProcessGroup {
  ProcessGroup(StorePtr store, int rank, int size);
  void setGroupDesc(const std::string& text);
};

class ProcessGroupGloo {
 public:
  struct Options {};
  struct AsyncWork : Work {
    void finishWorkGloo();
    void finishWorkGlooError(const std::exception_ptr& exception);
  };
  struct SendWork : Work {
    bool wait(std::chrono::milliseconds timeout) override;
  };
  struct RecvWork : Work {
    bool wait(std::chrono::milliseconds timeout) override;
    int sourceRank() const;  // 1
  };

  // Waits for the address of another member, as the real one does.
  ProcessGroupGloo(const StorePtr& store, int rank, int size, c10::intrusive_ptr<Options> options);
  virtual ~ProcessGroupGloo();
  virtual WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& options);
  virtual WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& options);
  virtual WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                                std::vector<int64_t>& outputs, std::vector<int64_t>& inputs,
                                const AllToAllOptions& options);
  virtual WorkPtr barrier(const BarrierOptions& options);
  virtual void monitoredBarrier(const BarrierOptions& options, bool wait_all_ranks);
  virtual WorkPtr send(Tensors& tensors, int to, int tag);
  virtual WorkPtr recv(Tensors& tensors, int from, int tag);
  virtual WorkPtr recvAnysource(Tensors& tensors, int tag);

  static void FinishOldest(bool with_error);

 private:
  void enqueue(c10::intrusive_ptr<AsyncWork> work);
  WorkPtr Enqueued();
};
}  // namespace c10d
