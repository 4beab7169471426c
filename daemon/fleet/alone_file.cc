// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/alone_file.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr char kAlone[] = "alone";

bool WasAlone(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  return word.empty() || word == kAlone;
}

}  // namespace

AloneFile::AloneFile(std::string path) : path_(std::move(path)), is_alone_(WasAlone(path_)) {}

void AloneFile::Save(bool is_alone) {
  if (is_alone == is_alone_ || path_.empty()) return;
  const std::string text = absl::StrCat(is_alone ? kAlone : "one of several", "\n");
  if (WriteAtomically(path_, text, 0600).ok()) is_alone_ = is_alone;
}

}  // namespace rollcall
