// SPDX-License-Identifier: Apache-2.0
// What a client sends to gRPC before it has identified itself. The first bytes of the input cut the
// rest into the pieces in which it comes.
#include <string_view>

#include "fuzz_target.h"
#include "net/http2_guard.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNow = 1'000'000'000;

bool ReadInPieces(std::string_view bytes, std::string_view sizes, Http2Guard* guard) {
  for (size_t i = 0; !bytes.empty(); ++i) {
    const size_t piece = sizes.empty() ? 1 : static_cast<uint8_t>(sizes[i % sizes.size()]) + 1;
    const std::string_view part = bytes.substr(0, piece);
    if (!guard->Read(part.data(), part.size(), kNow)) return false;
    bytes.remove_prefix(part.size());
  }
  return true;
}

void Run(Input input) {
  const std::string_view sizes = input.TakeBytes(4);
  const std::string_view bytes = input.TakeRest();
  Http2Guard whole, cut;
  const bool passes = whole.Read(bytes.data(), bytes.size(), kNow);
  Promise(ReadInPieces(bytes, sizes, &cut) == passes, "the pieces do not matter");
  Promise(whole.held() <= bytes.size(), "no message has more bytes than have come");
  if (passes) Promise(whole.held() == cut.held(), "the pieces do not matter for them");
  if (passes) return;
  Promise(whole.reason() != nullptr, "a connection that must end has a reason");
  Promise(std::string_view(whole.reason()) == cut.reason(), "the same reason");
  Promise(!whole.Read("", 0, kNow), "it stays refused");
}

const Registered kTarget({"http2", 4096, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
