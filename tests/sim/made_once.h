// SPDX-License-Identifier: Apache-2.0
// Objects of the simulated libraries that the first caller makes, and that outlive all threads.
//
// By pthread_once(), not as a local static: a job with ThreadSanitizer sees the calls of
// pthread_once(), but not the check of a static's guard in a library built without it. It would
// report the object's first use by another thread as a race.
#pragma once

#include <pthread.h>

namespace rollcall::sim {

// The only `T` of this library. `Make` returns it; T in an anonymous namespace belongs to one file.
template <typename T, T* (*Make)()>
T& MadeOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static T* object = nullptr;
  pthread_once(&once, [] { object = Make(); });
  return *object;
}

template <typename T>
T* MakeNew() {
  return new T;
}

template <typename T>
T& MadeOnce() {
  return MadeOnce<T, &MakeNew<T>>();
}

}  // namespace rollcall::sim
