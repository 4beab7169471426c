// SPDX-License-Identifier: Apache-2.0
// The functions of oneCCL's C++ interface that the library wraps, under the names that the compiler
// gives them.
//
// Nothing of oneCCL is included. Numbers, references, and objects that C++ passes by a hidden
// reference are words here. A number smaller than a word fills its lower part.
#pragma once

#include <stdint.h>

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

extern "C" {
using CclWord = uint64_t;

// ccl::event. It declares two functions that have no definition, so the compiler returns it
// through memory of the caller, as it does with that class.
struct CclEvent {
  uintptr_t state;  // what the library knows of the call; 0: it is done
  CclEvent(CclEvent&& from);
  ~CclEvent();
};

// ccl::communicator, likewise: a shared pointer. `handle` stays the same when the object moves.
struct CclComm {
  void* handle;
  void* count;
  CclComm(CclComm&& from);
  ~CclComm();
};

// std::vector<ccl::communicator>, likewise.
struct CclComms {
  CclComm *begin, *end, *limit;
  CclComms(CclComms&& from);
  ~CclComms();
};

// ccl::kvs::address_type, the unique id of a communicator.
struct CclAddress {
  char bytes[256];
};

#define CCL_PARAMETERS_3 CclWord a0, CclWord a1, CclWord a2
#define CCL_PARAMETERS_4 CCL_PARAMETERS_3, CclWord a3
#define CCL_PARAMETERS_6 CCL_PARAMETERS_4, CclWord a4, CclWord a5
#define CCL_PARAMETERS_7 CCL_PARAMETERS_6, CclWord a6
#define CCL_PARAMETERS_8 CCL_PARAMETERS_7, CclWord a7
#define CCL_PARAMETERS_9 CCL_PARAMETERS_8, CclWord a8
#define CCL_PARAMETERS_10 CCL_PARAMETERS_9, CclWord a9
#define CCL_ARGUMENTS_3 a0, a1, a2
#define CCL_ARGUMENTS_4 CCL_ARGUMENTS_3, a3
#define CCL_ARGUMENTS_6 CCL_ARGUMENTS_4, a4, a5
#define CCL_ARGUMENTS_7 CCL_ARGUMENTS_6, a6
#define CCL_ARGUMENTS_8 CCL_ARGUMENTS_7, a7
#define CCL_ARGUMENTS_9 CCL_ARGUMENTS_8, a8
#define CCL_ARGUMENTS_10 CCL_ARGUMENTS_9, a9
#define EVENT_CALL(symbol, op, words, ...) CclEvent symbol(CCL_PARAMETERS_##words);
#include "interpose/oneccl_cpp_calls.def"

// ccl::event's wait(), test(), operator bool() and destructors.
void _ZN3ccl2v15event4waitEv(CclEvent* event);
bool _ZN3ccl2v15event4testEv(CclEvent* event);
bool _ZN3ccl2v15eventcvbEv(CclEvent* event);
void _ZN3ccl2v15eventD1Ev(CclEvent* event);
void _ZN3ccl2v15eventD2Ev(CclEvent* event);

// ccl::create_communicator(size, rank, store, attributes).
CclComm _ZN3ccl2v119create_communicatorEiiSt10shared_ptrINS0_13kvs_interfaceEERKNS0_9comm_attrE(
    int size, int rank, void* const* store, const void* attributes);
// What the templates ccl::create_communicator() and ccl::create_communicators() call: for pairs of
// a rank and a device, for all devices of the process that take part.
CclComms
_ZNK3ccl6detail11environment20create_communicatorsINS_2v16deviceENS3_7contextEEESt6vectorINS3_12communicatorESaIS7_EEiRKS6_ISt4pairIiT_ESaISC_EERKT0_St10shared_ptrINS3_13kvs_interfaceEERKNS3_9comm_attrE(
    const void* self, int size, const void* devices, const void* context, void* const* store,
    const void* attributes);
CclComm _ZN3ccl2v118split_communicatorERKNS0_12communicatorEii(const CclComm* parent, int color,
                                                               int key);
CclComm _ZN3ccl2v112communicator5splitEiib(const CclComm* parent, int color, int key,
                                           bool for_others);
void _ZN3ccl2v112communicator8finalizeEv(CclComm* comm);
void _ZN3ccl2v112communicatorD1Ev(CclComm* comm);
void _ZN3ccl2v112communicatorD2Ev(CclComm* comm);
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
