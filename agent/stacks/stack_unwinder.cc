// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_unwinder.h"

#include <libunwind.h>

#include "agent/stacks/stack_walk.h"

namespace rollcall {

StackUnwinder::StackUnwinder(const RawSample& sample, SampleModules* modules)
    : modules_(modules),
      address_space_(NewUnwindSpace()),
      budget_(std::make_unique<UnwindBudget>(sample.threads.size())) {
  if (address_space_ != nullptr) {
    unw_set_caching_policy(static_cast<unw_addr_space_t>(address_space_), UNW_CACHE_GLOBAL);
  }
}

StackUnwinder::~StackUnwinder() {
  if (address_space_ != nullptr) {
    unw_destroy_addr_space(static_cast<unw_addr_space_t>(address_space_));
  }
}

UnwoundStack StackUnwinder::Unwind(const RawThread& thread, size_t max_frames) {
  if (!thread.taken() || address_space_ == nullptr) return {};
  const WalkContext context = {static_cast<unw_addr_space_t>(address_space_), modules_,
                               &debug_frames_, budget_.get()};
  return StackWalk(context, thread).Run(max_frames);
}

}  // namespace rollcall
