// SPDX-License-Identifier: Apache-2.0
// A folder with small files for one test. The destructor removes the folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace rollcall {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "rollcall-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~TemporaryTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;

  const std::string& root() const { return root_; }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  // Its owner alone may read it.
  void WriteSecret(const std::string& file, const std::string& text) const {
    Write(file, text);
    using std::filesystem::perms;
    std::filesystem::permissions(std::filesystem::path(root_) / file,
                                 perms::owner_read | perms::owner_write);
  }

  void Link(const std::string& file, const std::string& target) const {
    const std::filesystem::path path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

  void Remove(const std::string& file) const {
    std::filesystem::remove_all(std::filesystem::path(root_) / file);
  }

 private:
  std::string root_;
};

}  // namespace rollcall
