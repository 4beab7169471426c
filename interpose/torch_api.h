// SPDX-License-Identifier: Apache-2.0
// The functions of PyTorch that the library wraps, under the names that the compiler gives them.
//
// Nothing of PyTorch is included. References, and objects that C++ passes by a hidden reference,
// are words here: the wrappers pass them on, and read only what torch_objects.h describes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

extern "C" {
// c10::intrusive_ptr<c10d::Work>. Because of the two functions, which no code calls or defines, the
// compiler returns it through memory of the caller, as it does with that class.
struct TorchWork {
  void* work;
  TorchWork(TorchWork&& from);
  ~TorchWork();
};

#define COLLECTIVE(symbol, op, root, tensors, parameters, arguments) TorchWork symbol(parameters);
#include "interpose/gloo_collectives.def"

TorchWork _ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE(void* group,
                                                                    const void* options);
void _ZN4c10d16ProcessGroupGloo16monitoredBarrierERKNS_14BarrierOptionsEb(void* group,
                                                                          const void* options,
                                                                          bool wait_all_ranks);

// c10d::ProcessGroupGloo(store, rank, size, options), and its destructors.
void _ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE(
    void* group, void* const* store, int rank, int size, void* options);
void _ZN4c10d16ProcessGroupGlooD0Ev(void* group);
void _ZN4c10d16ProcessGroupGlooD1Ev(void* group);

bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void* work, int64_t timeout);
void _ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE(
    void* group, void* const* work);
void _ZN4c10d16ProcessGroupGloo9AsyncWork14finishWorkGlooEv(void* work);
void _ZN4c10d16ProcessGroupGloo9AsyncWork19finishWorkGlooErrorERKNSt15__exception_ptr13exception_ptrE(
    void* work, const void* exception);

TorchWork _ZN4c10d16ProcessGroupGloo4sendERSt6vectorIN2at6TensorESaIS3_EEii(void* group,
                                                                            void* tensors, int peer,
                                                                            int tag);
TorchWork _ZN4c10d16ProcessGroupGloo4recvERSt6vectorIN2at6TensorESaIS3_EEii(void* group,
                                                                            void* tensors, int peer,
                                                                            int tag);
TorchWork _ZN4c10d16ProcessGroupGloo13recvAnysourceERSt6vectorIN2at6TensorESaIS3_EEi(void* group,
                                                                                     void* tensors,
                                                                                     int tag);
bool _ZN4c10d16ProcessGroupGloo8SendWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* work, int64_t timeout);
bool _ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* work, int64_t timeout);

// c10d::PrefixStore(prefix, store).
void _ZN4c10d11PrefixStoreC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN3c1013intrusive_ptrINS_5StoreENS7_6detail34intrusive_target_default_null_typeIS9_EEEE(
    void* made, const void* prefix, void* const* store);
void _ZN4c10d11PrefixStoreC1ESsN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEE(
    void* made, const void* prefix, void* const* store);
// c10d::ProcessGroup(store, rank, size); until PyTorch 2.5 also with options.
void _ZN4c10d12ProcessGroupC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEii(
    void* group, void* const* store, int rank, int size);
void _ZN4c10d12ProcessGroupC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE(
    void* group, void* const* store, int rank, int size, void* options);
void _ZN4c10d12ProcessGroup12setGroupDescERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    void* group, const void* text);
void _ZN4c10d12ProcessGroup12setGroupDescERKSs(void* group, const void* text);

// std::vector<uint8_t>, returned as TorchWork is.
struct TorchBytes {
  void* bounds[3];
  TorchBytes(TorchBytes&& from);
  ~TorchBytes();
};
// c10d::TCPStore::doWait(c10::ArrayRef<std::string> keys, timeout), which is passed in two words.
void _ZN4c10d8TCPStore6doWaitEN3c108ArrayRefINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, size_t count, int64_t timeout);
void _ZN4c10d8TCPStore6doWaitEN3c108ArrayRefISsEENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, size_t count, int64_t timeout);
// wait(keys, timeout) and get(key) of c10d::FileStore and c10d::HashStore.
void _ZN4c10d9FileStore4waitERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS7_EERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, const int64_t* timeout);
void _ZN4c10d9FileStore4waitERKSt6vectorISsSaISsEERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, const int64_t* timeout);
TorchBytes _ZN4c10d9FileStore3getERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    void* store, const void* key);
TorchBytes _ZN4c10d9FileStore3getERKSs(void* store, const void* key);
void _ZN4c10d9HashStore4waitERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS7_EERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, const int64_t* timeout);
void _ZN4c10d9HashStore4waitERKSt6vectorISsSaISsEERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, const void* keys, const int64_t* timeout);
TorchBytes _ZN4c10d9HashStore3getERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    void* store, const void* key);
TorchBytes _ZN4c10d9HashStore3getERKSs(void* store, const void* key);
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
