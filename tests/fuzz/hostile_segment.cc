// SPDX-License-Identifier: Apache-2.0
// A process that writes into its segment what no library writes, as fast as it can, until it is
// ended: the inputs of the target `segment`, changed, and any words anywhere. Nearly always the
// segment still says whose it is: else no agent would read it.
//
//   hostile_segment FOLDER SEED
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "agent/processes/proc_stat.h"
#include "byte_mutator.h"
#include "fuzz_target.h"
#include "kept_inputs.h"
#include "seeds.h"
#include "segment_builder.h"
#include "segment_pieces.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kMostBytes = 16384;  // of an input
constexpr size_t kIdentityBytes = offsetof(segment::SegmentHeader, job);
constexpr unsigned kMostChanges = 8;  // of an input
constexpr unsigned kWords = 16;       // after each input
constexpr unsigned kTruths = 256;     // of so many inputs, one says that the segment is another's

// The file; agents find it because the process has mapped it.
class Segment {
 public:
  explicit Segment(const std::string& folder) {
    const uint64_t started = ReadProcStat("/proc", getpid())->start_time;
    builder_.BelongTo(getpid(), started);
    const std::string name = std::to_string(getpid()) + "-" + std::to_string(started) + ".seg";
    fd_ = open((folder + "/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    Promise(fd_ >= 0, "the file can be made");
    Identify();
    const void* mapped = mmap(nullptr, segment::kMappedBytes, PROT_READ, MAP_SHARED, fd_, 0);
    Promise(mapped != MAP_FAILED, "the file can be mapped");
  }

  void Identify() {
    Write({segment::kMappedBytes, {}});
    Write({0, {builder_.bytes().data(), kIdentityBytes}});
  }
  void Write(const Piece& piece) {
    if (piece.bytes.empty()) {
      Promise(ftruncate(fd_, static_cast<off_t>(piece.offset)) == 0, "a file can be cut");
    } else {
      const auto at = static_cast<off_t>(piece.offset);
      Promise(pwrite(fd_, piece.bytes.data(), piece.bytes.size(), at) > 0, "there is room");
    }
  }

 private:
  SegmentBuilder builder_;
  int fd_ = -1;
};

// Without what says whose segment it is.
Piece BehindIdentity(Piece piece) {
  if (piece.bytes.empty() || piece.offset >= kIdentityBytes) return piece;
  const size_t before = std::min<size_t>(kIdentityBytes - piece.offset, piece.bytes.size());
  piece.bytes.remove_prefix(before);
  piece.offset += before;
  return piece.bytes.empty() ? Piece{segment::kMappedBytes, {}} : piece;
}

void WriteInput(Input input, bool is_lie, Segment* segment) {
  input.Take<uint8_t>();
  input.Take<uint16_t>();
  while (!input.empty()) {
    auto kind = input.Take<uint8_t>();
    if (kind == kSegmentRead) continue;
    if (kind == kSegmentLater) {
      input.Take<uint8_t>();
      kind = input.Take<uint8_t>();
    }
    const Piece piece = TakePiece(kind, &input);
    segment->Write(is_lie ? piece : BehindIdentity(piece));
  }
}

void WriteWord(std::minstd_rand* random, Segment* segment) {
  const uint64_t word = UnusualNumber(random);
  const uint64_t begin = kSegmentRegions[(*random)() % std::size(kSegmentRegions)];
  const uint64_t offset = begin + (*random)() % 8192 / 8 * 8;
  if (offset < kIdentityBytes || offset + sizeof(word) > segment::kMappedBytes) return;
  segment->Write({offset, {reinterpret_cast<const char*>(&word), sizeof(word)}});
}

std::string Changed(std::string input, std::minstd_rand* random) {
  input.resize(kMostBytes);
  size_t size = input.find_last_not_of('\0') + 1;
  auto* data = reinterpret_cast<uint8_t*>(input.data());
  for (unsigned i = (*random)() % kMostChanges; i > 0; --i) {
    size = MutateBytes(data, size, kMostBytes, random);
  }
  input.resize(size);
  return input;
}

[[noreturn]] void Run(const std::string& folder, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::string> inputs = AllSeeds()["segment"];
  for (std::string& kept : KeptInputs(ROLLCALL_FUZZ_CORPUS, "segment")) {
    inputs.push_back(std::move(kept));
  }
  Segment segment(folder);
  std::printf("%d writes %zu inputs\n", getpid(), inputs.size());
  std::fflush(stdout);
  while (true) {
    const std::string input = Changed(inputs[random() % inputs.size()], &random);
    const bool is_lie = random() % kTruths == 0;
    WriteInput({reinterpret_cast<const uint8_t*>(input.data()), input.size()}, is_lie, &segment);
    for (unsigned i = 0; i < kWords; ++i) WriteWord(&random, &segment);
    segment.Identify();
  }
}

}  // namespace
}  // namespace fuzz
}  // namespace rollcall

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rollcall::fuzz::Run(argv[1], static_cast<unsigned>(std::atoi(argv[2])));
}
