// SPDX-License-Identifier: Apache-2.0
// A libccl.so.1 for tests: classes and functions of oneCCL's C++ interface that the library wraps,
// with the same names and arguments, and nothing behind them.
//
// An event is done at its third test. A call throws if stub_throws is set.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

extern bool stub_throws;
extern void (*stub_calls)();  // what a wait and a barrier call, if it is not nullptr

namespace ccl {
class event_impl;
struct comm_interface;

inline namespace v1 {
enum class datatype : int {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32
};
enum class reduction : int { sum, prod, min, max };

class event {
 public:
  explicit event(event_impl* impl);
  event(event&& from) noexcept;
  ~event() noexcept;
  void wait();
  bool test();
  explicit operator bool();

 private:
  std::unique_ptr<event_impl> impl_;
};

class kvs_interface {
 public:
  virtual ~kvs_interface() = default;
  virtual int get() = 0;
};

class kvs : public kvs_interface {
 public:
  using address_type = std::array<char, 256>;
  explicit kvs(const char* name);
  int get() override;
  address_type get_address() const;

 private:
  const char* name_;
};

struct comm_attr {};
struct stream {};
struct device {
  std::shared_ptr<int> impl;
};
struct context {};
struct allreduce_attr {};
struct allgatherv_attr {};
struct broadcast_attr {};
struct barrier_attr {};
struct pt2pt_attr {};

class communicator {
 public:
  explicit communicator(std::shared_ptr<comm_interface>&& impl);
  communicator(communicator&& from);
  ~communicator();
  int rank() const;
  int size() const;
  void finalize();
  communicator split(int color, int key, bool for_others);

 private:
  std::shared_ptr<comm_interface> impl_;
};

using events = std::vector<event>;
communicator create_communicator(int size, int rank, std::shared_ptr<kvs_interface> store,
                                 const comm_attr& attributes);
communicator split_communicator(const communicator& parent, int color, int key);

event allreduce(const void* from, void* to, size_t count, datatype type, reduction how,
                const communicator& comm, const allreduce_attr& attributes,
                const std::vector<event>& after);
event allreduce(const void* from, void* to, size_t count, datatype type, reduction how,
                const communicator& comm, const stream& on, const allreduce_attr& attributes,
                const std::vector<event>& after);
template <class Type, class Event = event>
event allreduce(const Type* from, Type* to, size_t count, reduction how, const communicator& comm,
                const allreduce_attr& attributes, const std::vector<event>& after);
template <class Type, class Event = event>
event broadcast(Type* buffer, size_t count, int root, const communicator& comm,
                const broadcast_attr& attributes, const std::vector<event>& after);
event allgatherv(const void* from, size_t count, void* to, const std::vector<size_t>& counts,
                 datatype type, const communicator& comm, const allgatherv_attr& attributes,
                 const std::vector<event>& after);
event barrier(const communicator& comm, const barrier_attr& attributes,
              const std::vector<event>& after);
event send(void* buffer, size_t count, datatype type, int peer, const communicator& comm,
           const pt2pt_attr& attributes, const std::vector<event>& after);
event recv(void* buffer, size_t count, datatype type, int peer, const communicator& comm,
           const pt2pt_attr& attributes, const std::vector<event>& after);
}  // namespace v1

namespace detail {
class environment {
 public:
  template <class Device, class Context>
  std::vector<communicator> create_communicators(int size,
                                                 const std::vector<std::pair<int, Device>>& devices,
                                                 const Context& in,
                                                 std::shared_ptr<kvs_interface> store,
                                                 const comm_attr& attributes) const;
};
}  // namespace detail
}  // namespace ccl
