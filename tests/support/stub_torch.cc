// SPDX-License-Identifier: Apache-2.0
#include "tests/support/stub_torch.h"

#include <deque>
#include <stdexcept>

bool stub_throws = false;
void (*stub_calls)() = nullptr;

namespace {

void MayThrow() {
  if (stub_calls != nullptr) stub_calls();
  if (stub_throws) throw std::runtime_error("the stub throws");
}

std::deque<c10d::ProcessGroupGloo::AsyncWork*> queue;

}  // namespace

extern "C" int32_t aoti_torch_get_numel(at::Tensor* tensor, int64_t* numel) {
  *numel = tensor->impl->numel;
  return 0;
}

extern "C" int32_t aoti_torch_get_dtype(at::Tensor* tensor, int32_t* dtype) {
  *dtype = tensor->impl->dtype;
  return 0;
}

namespace c10d {

PrefixStore::PrefixStore(std::string, StorePtr) {}

void TCPStore::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  doWait({keys.data(), keys.size()}, timeout);
}
void TCPStore::doWait(c10::ArrayRef<std::string>, std::chrono::milliseconds) { MayThrow(); }

std::vector<uint8_t> FileStore::get(const std::string& key) {
  MayThrow();
  return {key.begin(), key.end()};
}
void FileStore::wait(const std::vector<std::string>&, const std::chrono::milliseconds&) {
  MayThrow();
}

bool Work::wait(std::chrono::milliseconds) {
  MayThrow();
  return true;
}

bool ProcessGroupGloo::SendWork::wait(std::chrono::milliseconds timeout) {
  return Work::wait(timeout);
}

bool ProcessGroupGloo::RecvWork::wait(std::chrono::milliseconds timeout) {
  return Work::wait(timeout);
}

void ProcessGroupGloo::AsyncWork::finishWorkGloo() {}
void ProcessGroupGloo::AsyncWork::finishWorkGlooError(const std::exception_ptr&) {}

ProcessGroup::ProcessGroup(StorePtr, int, int) {}
void ProcessGroup::setGroupDesc(const std::string&) {}

ProcessGroupGloo::ProcessGroupGloo(const StorePtr&, int, int, c10::intrusive_ptr<Options>) {
  TCPStore().wait({"/default_pg/0//cpu//0/1"}, std::chrono::milliseconds(1800000));
}
ProcessGroupGloo::~ProcessGroupGloo() = default;

void ProcessGroupGloo::enqueue(c10::intrusive_ptr<AsyncWork> work) { queue.push_back(work.get()); }

WorkPtr ProcessGroupGloo::Enqueued() {
  MayThrow();
  auto* work = new AsyncWork();
  enqueue(work);
  return WorkPtr(work);
}

WorkPtr ProcessGroupGloo::allreduce(Tensors&, const AllreduceOptions&) { return Enqueued(); }
WorkPtr ProcessGroupGloo::broadcast(Tensors&, const BroadcastOptions&) { return Enqueued(); }
WorkPtr ProcessGroupGloo::barrier(const BarrierOptions&) { return Enqueued(); }

// As versions of PyTorch that make one call of others.
WorkPtr ProcessGroupGloo::alltoall_base(at::Tensor& output, at::Tensor&,
                                        std::vector<int64_t>& outputs, std::vector<int64_t>& inputs,
                                        const AllToAllOptions&) {
  if (outputs.size() != inputs.size()) throw std::invalid_argument("the sizes differ");
  Tensors tensors = {output};
  allreduce(tensors, {});
  return allreduce(tensors, {});
}

void ProcessGroupGloo::monitoredBarrier(const BarrierOptions&, bool) { MayThrow(); }

WorkPtr ProcessGroupGloo::send(Tensors&, int, int) {
  MayThrow();
  return WorkPtr(new SendWork());
}

WorkPtr ProcessGroupGloo::recv(Tensors&, int, int) {
  MayThrow();
  return WorkPtr(new RecvWork());
}

WorkPtr ProcessGroupGloo::recvAnysource(Tensors&, int) {
  MayThrow();
  return WorkPtr(new RecvWork());
}

int ProcessGroupGloo::RecvWork::sourceRank() const { return 1; }

void ProcessGroupGloo::FinishOldest(bool with_error) {
  AsyncWork* work = queue.front();
  queue.pop_front();
  if (with_error) {
    work->finishWorkGlooError(std::make_exception_ptr(std::runtime_error("a peer is gone")));
  } else {
    work->finishWorkGloo();
  }
}

}  // namespace c10d
