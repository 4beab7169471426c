// SPDX-License-Identifier: Apache-2.0
#include "base/clean_stream.h"

#include <iostream>
#include <string>
#include <string_view>

#include "base/clean_text.h"

namespace rollcall {

CleanStream::CleanStream(std::ostream* stream) : stream_(stream), to_(stream->rdbuf(this)) {}
CleanStream::~CleanStream() { stream_->rdbuf(to_); }

// Streams write each text at once, so no character is in two parts.
std::streamsize CleanStream::xsputn(const char* text, std::streamsize size) {
  const std::string clean = CleanLines(std::string_view(text, static_cast<size_t>(size)));
  const auto length = static_cast<std::streamsize>(clean.size());
  return to_->sputn(clean.data(), length) == length ? size : 0;
}

int CleanStream::overflow(int character) {
  if (character == traits_type::eof()) return 0;
  const char byte = traits_type::to_char_type(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

int CleanStream::sync() { return to_->pubsync(); }

void CleanErrors() {
  static const CleanStream* const clean = new CleanStream(&std::cerr);
  static_cast<void>(clean);
}

}  // namespace rollcall
