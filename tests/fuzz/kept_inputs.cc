// SPDX-License-Identifier: Apache-2.0
#include "kept_inputs.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

namespace fs = std::filesystem;

// The form of ustar: a block with the name, the size in octal digits and the kind, then the
// content, filled up to whole blocks. Blocks of zeros end it.
constexpr size_t kBlock = 512;
constexpr size_t kSizeOffset = 124, kSizeDigits = 11, kKindOffset = 156;

// At most `size` bytes; fewer at the end of the file.
std::string Take(gzFile file, size_t size) {
  std::string bytes(size, '\0');
  const int taken = gzread(file, bytes.data(), static_cast<unsigned>(size));
  Promise(taken >= 0, "the archive can be unpacked");
  bytes.resize(static_cast<size_t>(taken));
  return bytes;
}

std::vector<std::string> ReadArchive(const fs::path& path) {
  std::vector<std::string> inputs;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return inputs;
  while (true) {
    const std::string head = Take(file, kBlock);
    if (head.empty() || head[0] == '\0') break;
    Promise(head.size() == kBlock, "the archive has whole blocks");
    const std::string digits = head.substr(kSizeOffset, kSizeDigits);
    const size_t size = std::strtoul(digits.c_str(), nullptr, 8);
    std::string content = Take(file, (size + kBlock - 1) / kBlock * kBlock);
    Promise(content.size() >= size, "the archive is complete");
    content.resize(size);
    if (head[kKindOffset] == '0') inputs.push_back(std::move(content));
  }
  gzclose(file);
  return inputs;
}

void AddFiles(const fs::path& folder, std::vector<std::string>* inputs) {
  if (!fs::exists(folder)) return;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs->emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
}

}  // namespace

std::vector<std::string> KeptInputs(const std::string& folder, const std::string& target) {
  std::vector<std::string> inputs = ReadArchive(fs::path(folder) / (target + ".tar.gz"));
  AddFiles(fs::path(folder) / target, &inputs);
  return inputs;
}

}  // namespace fuzz
}  // namespace rollcall
