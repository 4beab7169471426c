// SPDX-License-Identifier: Apache-2.0
// Writes the seeds to DIR/TARGET/: fuzz_seeds DIR [ELF...]. The small ELF files become inputs, too.
// A file's name is the digest of its content.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/digest/digest.h"
#include "seeds.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: fuzz_seeds DIR [ELF...]\n";
    return 2;
  }
  rollcall::fuzz::Seeds seeds = rollcall::fuzz::AllSeeds();
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    rollcall::fuzz::AddElfSeeds({std::istreambuf_iterator<char>(file), {}}, &seeds);
  }
  for (const auto& [target, inputs] : seeds) {
    const fs::path folder = fs::path(argv[1]) / target;
    fs::create_directories(folder);
    for (const std::string& input : inputs) {
      std::ofstream(folder / rollcall::Sha256Hex(input).substr(0, 40), std::ios::binary) << input;
    }
  }
  return 0;
}
