// SPDX-License-Identifier: Apache-2.0
// The files of the kernel that probes read, below a root: "" on a host, the place where the host's
// files are mounted in a container, or a recorded tree in tests.
//
// Every read may block, which is why probes are processes of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

class HostFiles {
 public:
  explicit HostFiles(std::string root = "") : root_(std::move(root)) {}

  std::string Path(const std::string& path) const { return root_ + path; }
  // Without the blanks and line ends around it. nullopt if there is no such file, or it is
  // unreadable.
  std::optional<std::string> Read(const std::string& path) const;
  // Returns the number at the beginning of a file.
  std::optional<int64_t> Number(const std::string& path) const;
  // Returns the number after this word at the beginning of a line: "some avg10=" or "pswpin ".
  std::optional<int64_t> Number(const std::string& path, std::string_view word) const;
  bool Exists(const std::string& path) const;
  // The entries of a folder, in order. Empty if it has none or does not exist.
  std::vector<std::string> List(const std::string& path) const;
  // Returns the last part of the path that a symbolic link leads to; empty if it is not a link.
  std::string LinkName(const std::string& path) const;

 private:
  const std::string root_;
};

// Returns the whole number after `word` at the beginning of a line of the text.
std::optional<int64_t> NumberAfter(std::string_view text, std::string_view word);

// Waits between two samples of a probe.
void Pause(int64_t ns);

}  // namespace rollcall
