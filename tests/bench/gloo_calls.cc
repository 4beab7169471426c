// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gloo_calls.h"

#include <string>
#include <vector>

#include "tests/support/stub_torch.h"

namespace {

using namespace c10d;  // NOLINT(google-build-using-namespace)

constexpr int32_t kFloat = 6;  // c10::ScalarType

ProcessGroupGloo* group = nullptr;
at::TensorImpl numbers = {1024, kFloat};
Tensors tensors = {at::Tensor{&numbers}};
const std::vector<std::string> keys = {"/default_pg/0//saved/step 1000"};

}  // namespace

void MakeGlooGroup() {
  const StorePtr store(new PrefixStore("default_pg", StorePtr(new Store())));
  group = new ProcessGroupGloo(store, 0, 2, nullptr);
}

int GlooAllReduce(ncclComm_t) {
  const WorkPtr work = group->allreduce(tensors, {});
  ProcessGroupGloo::FinishOldest(false);
  delete work.get();
  return 0;
}

int GlooSend(ncclComm_t) {
  const WorkPtr work = group->send(tensors, 1, 0);
  work->wait(std::chrono::milliseconds(1000));
  delete work.get();
  return 0;
}

int WaitForKey(ncclComm_t) {
  TCPStore().wait(keys, std::chrono::milliseconds(1000));
  return 0;
}
