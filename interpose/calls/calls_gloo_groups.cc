// SPDX-License-Identifier: Apache-2.0
// The wrappers of the constructors and destructors of PyTorch's gloo groups, and of the functions
// that show which groups belong together and what people call them.
#include "interpose/calls/gloo_groups.h"
#include "interpose/calls/gloo_messages.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/recording.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::CommState;

// A group that a thread is making.
struct Creation : OpenCall {
  LocalComm* comm;
};

void FailCreation(OpenCall* open) {
  SetState(static_cast<Creation*>(open)->comm, CommState::kFailed);
}

LocalComm* AddGlooGroup(ThreadState* thread, const void* store, int rank, int size) {
  const InsideCall inside(thread);
  GlooGroup group;
  DescribeGlooGroup(store, rank, size, &group);
  LocalComm* comm = AddComm(group.what);
  if (comm == nullptr) return nullptr;
  FindTorchTensors();
  SetOwner(comm, group.owner);
  comm->entry->kind.store(static_cast<uint32_t>(CommKind::kGloo), std::memory_order_relaxed);
  comm->entry->flags.fetch_or(segment::kFlagHostCalls);
  return comm;
}

// The constructor waits for all members.
template <typename Function, typename... Args>
__attribute__((noinline, noclone)) void RecordCreation(Function* real, LocalComm* comm, void* group,
                                                       Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Blocked blocked(thread, Op::kProcessGroupGloo, comm, nullptr, Now());
  auto* creation = OpenCallRoom<Creation>();
  creation->thrown = &FailCreation;
  creation->comm = comm;
  const MayThrow may_throw(creation);
  real(group, args...);
  BindHandle(comm, group);
  SetState(comm, CommState::kReady);
}

// A group may be destroyed with works in its queue, which its threads end first.
template <typename Function>
__attribute__((always_inline)) inline void ObserveEnd(Function* real, void* group) {
  ThreadState* thread = &this_thread;
  LocalComm* comm = IsInsideCall() || !Recording() ? nullptr : FindComm(group);
  if (comm == nullptr) return real(group);
  const InsideCall inside(thread);
  ForgetHandle(comm);
  {
    const Blocked blocked(thread, Op::kdestroy_process_group, comm, nullptr, Now());
    real(group);
  }
  ForgetRequests(comm);
  ForgetMessages(comm);
  SetState(comm, CommState::kDestroyed);
}

}  // namespace
}  // namespace rollcall

using rollcall::NameProcessGroup;
using rollcall::NewString;
using rollcall::OldString;
using rollcall::RecordPrefixStore;
using rollcall::RecordProcessGroup;

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT void
_ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE(
    void* group, void* const* store, int rank, int size, void* options) {
  const auto real = ROLLCALL_REAL(
      _ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE);
  rollcall::ThreadState* thread = &rollcall::this_thread;
  if (rollcall::IsInsideCall() || !rollcall::StartRecording()) {
    return real(group, store, rank, size, options);
  }
  rollcall::LocalComm* comm = rollcall::AddGlooGroup(thread, *store, rank, size);
  if (comm == nullptr) return real(group, store, rank, size, options);
  rollcall::RecordCreation(real, comm, group, store, rank, size, options);
}

EXPORT void _ZN4c10d16ProcessGroupGlooD0Ev(void* group) {
  rollcall::ObserveEnd(ROLLCALL_REAL(_ZN4c10d16ProcessGroupGlooD0Ev), group);
}

EXPORT void _ZN4c10d16ProcessGroupGlooD1Ev(void* group) {
  rollcall::ObserveEnd(ROLLCALL_REAL(_ZN4c10d16ProcessGroupGlooD1Ev), group);
}

EXPORT void
_ZN4c10d11PrefixStoreC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN3c1013intrusive_ptrINS_5StoreENS7_6detail34intrusive_target_default_null_typeIS9_EEEE(
    void* made, const void* prefix, void* const* store) {
  RecordPrefixStore(made, NewString(prefix), *store);
  ROLLCALL_REAL(
      _ZN4c10d11PrefixStoreC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN3c1013intrusive_ptrINS_5StoreENS7_6detail34intrusive_target_default_null_typeIS9_EEEE)(
      made, prefix, store);
}

EXPORT void
_ZN4c10d11PrefixStoreC1ESsN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEE(
    void* made, const void* prefix, void* const* store) {
  RecordPrefixStore(made, OldString(prefix), *store);
  ROLLCALL_REAL(
      _ZN4c10d11PrefixStoreC1ESsN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEE)(
      made, prefix, store);
}

EXPORT void
_ZN4c10d12ProcessGroupC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEii(
    void* group, void* const* store, int rank, int size) {
  RecordProcessGroup(group, *store);
  ROLLCALL_REAL(
      _ZN4c10d12ProcessGroupC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEii)(
      group, store, rank, size);
}

EXPORT void
_ZN4c10d12ProcessGroupC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE(
    void* group, void* const* store, int rank, int size, void* options) {
  RecordProcessGroup(group, *store);
  ROLLCALL_REAL(
      _ZN4c10d12ProcessGroupC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE)(
      group, store, rank, size, options);
}

EXPORT void
_ZN4c10d12ProcessGroup12setGroupDescERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    void* group, const void* text) {
  NameProcessGroup(group, NewString(text));
  ROLLCALL_REAL(
      _ZN4c10d12ProcessGroup12setGroupDescERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)(
      group, text);
}

EXPORT void _ZN4c10d12ProcessGroup12setGroupDescERKSs(void* group, const void* text) {
  NameProcessGroup(group, OldString(text));
  ROLLCALL_REAL(_ZN4c10d12ProcessGroup12setGroupDescERKSs)(group, text);
}
