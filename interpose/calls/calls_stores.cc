// SPDX-License-Identifier: Apache-2.0
// The wrappers of the waits for keys of PyTorch's stores (c10d::TCPStore, FileStore, HashStore).
//
// A process without a segment records none of them: it has made no group yet, or it is a launcher,
// which waits in stores, too. Its waits have a note on the stack (key_note.h).
#include <string.h>

#include "interpose/calls/awaited_keys.h"
#include "interpose/real.h"

namespace rollcall {
namespace {

using ReadString = TextView (*)(const void* string);

// How a std::string of each ABI lies in memory.
struct StringKind {
  ReadString read;
  size_t bytes;
};
constexpr StringKind kNew = {&NewString, 32};
constexpr StringKind kOld = {&OldString, sizeof(void*)};

WantedKeys KeysAt(const StringKind& kind, const void* keys, size_t count, int64_t timeout) {
  WantedKeys wanted = {{nullptr, 0}, {nullptr, 0}, count, static_cast<uint64_t>(timeout)};
  if (count == 0) return wanted;
  wanted.first = kind.read(keys);
  wanted.last = kind.read(static_cast<const char*>(keys) + (count - 1) * kind.bytes);
  return wanted;
}

WantedKeys KeysIn(const StringKind& kind, const void* vector, int64_t timeout) {
  const char* bounds[2];  // of the elements: begin, end
  memcpy(bounds, vector, sizeof(bounds));
  return KeysAt(kind, bounds[0], static_cast<size_t>(bounds[1] - bounds[0]) / kind.bytes, timeout);
}

template <typename Result, typename... Parameters, typename... Args>
__attribute__((noinline, noclone)) Result RecordStoreWait(Result (*real)(Parameters...),
                                                          const WantedKeys& keys, Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const StoreWait wait(keys);
  return real(args...);
}

template <typename Result, typename... Parameters, typename... Args>
__attribute__((noinline, noclone)) Result NoteStoreWait(Result (*real)(Parameters...),
                                                        const WantedKeys& keys, Args... args) {
  const KeyOnStack note(keys);
  return real(args...);
}

template <typename Result, typename... Parameters, typename... Args>
__attribute__((always_inline)) inline Result WaitForKeys(Result (*real)(Parameters...),
                                                         const WantedKeys& keys, Args... args) {
  if (RecordsStoreWait()) return RecordStoreWait(real, keys, args...);
  return Recording() ? real(args...) : NoteStoreWait(real, keys, args...);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

#define TCP_STORE_WAIT(symbol, kind)                                                    \
  EXPORT void symbol(void* store, const void* keys, size_t count, int64_t timeout) {    \
    const auto real = ROLLCALL_REAL(symbol);                                            \
    WaitForKeys(real, KeysAt(kind, keys, count, timeout), store, keys, count, timeout); \
  }
#define STORE_WAIT(symbol, kind)                                              \
  EXPORT void symbol(void* store, const void* keys, const int64_t* timeout) { \
    const auto real = ROLLCALL_REAL(symbol);                                  \
    WaitForKeys(real, KeysIn(kind, keys, *timeout), store, keys, timeout);    \
  }
#define STORE_GET(symbol, kind)                                                  \
  EXPORT TorchBytes symbol(void* store, const void* key) {                       \
    const auto real = ROLLCALL_REAL(symbol);                                     \
    return WaitForKeys(real, KeysAt(kind, key, 1, kTimeoutOfStore), store, key); \
  }

TCP_STORE_WAIT(
    _ZN4c10d8TCPStore6doWaitEN3c108ArrayRefINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
    kNew)
TCP_STORE_WAIT(
    _ZN4c10d8TCPStore6doWaitEN3c108ArrayRefISsEENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE, kOld)
STORE_WAIT(
    _ZN4c10d9FileStore4waitERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS7_EERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
    kNew)
STORE_WAIT(
    _ZN4c10d9FileStore4waitERKSt6vectorISsSaISsEERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
    kOld)
STORE_GET(_ZN4c10d9FileStore3getERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE, kNew)
STORE_GET(_ZN4c10d9FileStore3getERKSs, kOld)
STORE_WAIT(
    _ZN4c10d9HashStore4waitERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS7_EERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
    kNew)
STORE_WAIT(
    _ZN4c10d9HashStore4waitERKSt6vectorISsSaISsEERKNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
    kOld)
STORE_GET(_ZN4c10d9HashStore3getERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE, kNew)
STORE_GET(_ZN4c10d9HashStore3getERKSs, kOld)
