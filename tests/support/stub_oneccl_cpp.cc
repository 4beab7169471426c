// SPDX-License-Identifier: Apache-2.0
#include "tests/support/stub_oneccl_cpp.h"

#include <cstring>
#include <stdexcept>

bool stub_throws = false;
void (*stub_calls)() = nullptr;

namespace ccl {

class event_impl {
 public:
  int tests = 0;
};

struct comm_interface {
  int rank, size;
};

namespace {

void MayThrow() {
  if (stub_throws) throw std::runtime_error("the stub throws");
}

void Wait() {
  if (stub_calls != nullptr) stub_calls();
  MayThrow();
}

event Begun() {
  MayThrow();
  return event(new event_impl());
}

communicator Make(int rank, int size) {
  Wait();
  return communicator(std::make_shared<comm_interface>(comm_interface{rank, size}));
}

}  // namespace

inline namespace v1 {

event::event(event_impl* impl) : impl_(impl) {}
event::event(event&& from) noexcept : impl_(std::move(from.impl_)) {}
event::~event() noexcept = default;
void event::wait() { Wait(); }
bool event::test() {
  MayThrow();
  return ++impl_->tests == 3;
}
event::operator bool() { return test(); }

kvs::kvs(const char* name) : name_(name) {}
int kvs::get() { return 0; }
kvs::address_type kvs::get_address() const {
  address_type address = {};
  strncpy(address.data(), name_, address.size() - 1);
  return address;
}

communicator::communicator(std::shared_ptr<comm_interface>&& impl) : impl_(std::move(impl)) {}
communicator::communicator(communicator&& from) : impl_(std::move(from.impl_)) {}
communicator::~communicator() = default;
int communicator::rank() const { return impl_->rank; }
int communicator::size() const { return impl_->size; }
void communicator::finalize() { Wait(); }
communicator communicator::split(int, int key, bool) { return Make(key, 2); }

communicator create_communicator(int size, int rank, std::shared_ptr<kvs_interface>,
                                 const comm_attr&) {
  return Make(rank, size);
}
communicator split_communicator(const communicator&, int, int key) { return Make(key, 2); }

event allreduce(const void*, void*, size_t, datatype, reduction, const communicator&,
                const allreduce_attr&, const std::vector<event>&) {
  return Begun();
}
event allreduce(const void*, void*, size_t, datatype, reduction, const communicator&, const stream&,
                const allreduce_attr&, const std::vector<event>&) {
  return Begun();
}
template <class Type, class Event>
event allreduce(const Type*, Type*, size_t, reduction, const communicator&, const allreduce_attr&,
                const std::vector<event>&) {
  return Begun();
}
template event allreduce<double, event>(const double*, double*, size_t, reduction,
                                        const communicator&, const allreduce_attr&,
                                        const std::vector<event>&);
template <class Type, class Event>
event broadcast(Type*, size_t, int, const communicator&, const broadcast_attr&,
                const std::vector<event>&) {
  return Begun();
}
template event broadcast<short, event>(short*, size_t, int, const communicator&,
                                       const broadcast_attr&, const std::vector<event>&);
event allgatherv(const void*, size_t, void*, const std::vector<size_t>&, datatype,
                 const communicator&, const allgatherv_attr&, const std::vector<event>&) {
  return Begun();
}
event barrier(const communicator&, const barrier_attr&, const std::vector<event>&) {
  Wait();
  return event(nullptr);
}
event send(void*, size_t, datatype, int, const communicator&, const pt2pt_attr&,
           const std::vector<event>&) {
  return Begun();
}
event recv(void*, size_t, datatype, int, const communicator&, const pt2pt_attr&,
           const std::vector<event>&) {
  return Begun();
}

}  // namespace v1

namespace detail {
template <class Device, class Context>
std::vector<communicator> environment::create_communicators(
    int size, const std::vector<std::pair<int, Device>>& devices, const Context&,
    std::shared_ptr<kvs_interface>, const comm_attr&) const {
  std::vector<communicator> made;
  for (const auto& rank_and_device : devices) made.push_back(Make(rank_and_device.first, size));
  return made;
}
template std::vector<communicator> environment::create_communicators<device, context>(
    int, const std::vector<std::pair<int, device>>&, const context&, std::shared_ptr<kvs_interface>,
    const comm_attr&) const;
}  // namespace detail
}  // namespace ccl
