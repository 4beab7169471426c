// SPDX-License-Identifier: Apache-2.0
// A library as small as one can be with symbols, lines, an inlined function and unwind tables: its
// files are the seeds of the targets for ELF.
#include <cstdint>

extern "C" {
extern const uint64_t _PyRuntime[2];
extern const uint64_t Py_Version;
int one_function(int n, const int* numbers);
}

const uint64_t _PyRuntime[2] = {1, 2};
const uint64_t Py_Version = 0x030b02f0;

namespace {

inline __attribute__((always_inline)) int Twice(int n) { return 2 * n; }

__attribute__((noinline)) int Sum(int n, const int* numbers) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += Twice(numbers[i]);
  return sum;
}

}  // namespace

int one_function(int n, const int* numbers) {
  volatile int room[20] = {n};
  room[n % 20] = Sum(n, numbers);
  return Twice(room[0]) + room[19];
}
