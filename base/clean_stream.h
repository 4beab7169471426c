// SPDX-License-Identifier: Apache-2.0
// Keeps control characters off the terminal, whatever a message of a program repeats: an argument,
// the name of a file, an answer of a daemon.
#pragma once

#include <ostream>
#include <streambuf>

namespace rollcall {

// While it lives, all that is written to the stream passes CleanLines().
class CleanStream : private std::streambuf {
 public:
  explicit CleanStream(std::ostream* stream);
  ~CleanStream() override;
  CleanStream(const CleanStream&) = delete;
  CleanStream& operator=(const CleanStream&) = delete;

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int overflow(int character) override;
  int sync() override;

  std::ostream* const stream_;
  std::streambuf* const to_;
};

// For std::cerr, until the program ends. Each program of ours calls it first.
void CleanErrors();

}  // namespace rollcall
