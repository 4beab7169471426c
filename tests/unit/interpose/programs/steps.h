// SPDX-License-Identifier: Apache-2.0
// A test program's arguments as its steps: each is a word, or WORD=NUMBER,NUMBER.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using Numbers = std::vector<int>;

inline int At(const Numbers& numbers, size_t index, int fallback) {
  return index < numbers.size() ? numbers[index] : fallback;
}

struct Step {
  std::string word;
  Numbers numbers;
};

inline Step ReadStep(const char* text) {
  const char* equals = strchr(text, '=');
  if (equals == nullptr) return {text, {}};
  Step step = {std::string(text, equals), {}};
  for (const char* at = equals + 1; at != nullptr && *at != '\0'; at = strchr(at, ',')) {
    if (*at == ',') ++at;
    step.numbers.push_back(atoi(at));
  }
  return step;
}
