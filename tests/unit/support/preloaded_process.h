// SPDX-License-Identifier: Apache-2.0
// Runs programs under the preloaded library in a folder of their own, and reads
// the segments that they leave. For tests.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

using Environment = std::map<std::string, std::string>;

class PreloadedProcessTest : public testing::Test {
 protected:
  // `libraries`: the folder with the libnccl.so.2 that the programs load.
  explicit PreloadedProcessTest(std::string libraries) : libraries_(std::move(libraries)) {}

  void SetUp() override {
    char path[] = "/tmp/rollcall-library-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    directory_ = scratch_ / "segments";
    std::filesystem::create_directory(directory_);
    chmod(directory_.c_str(), 0700);
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // Starts a program under the library. `prepare` runs in the child, before.
  pid_t Start(
      const std::vector<std::string>& command, const Environment& more = {},
      const std::function<void()>& prepare = [] {}) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const Environment usual = {{"LD_PRELOAD", ROLLCALL_LIBRARY},
                               {"LD_LIBRARY_PATH", libraries_},
                               {"ROLLCALL_DIR", directory_},
                               {"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"ROLLCALL_JOB", "a job"}};
    for (const auto& [name, value] : usual) setenv(name.c_str(), Foreign(value).c_str(), 1);
    for (const auto& [name, value] : more) setenv(name.c_str(), Foreign(value).c_str(), 1);
    if (freopen((scratch_ / "stderr").c_str(), "w", stderr) == nullptr) _exit(99);
    prepare();
    const std::vector<std::string> words = Emulated(command);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(98);
  }

  // The command itself. For another processor (library_aarch64.sh): that processor's build of the
  // command, under the emulator. The emulator must not preload the program's libraries.
  static std::vector<std::string> Emulated(const std::vector<std::string>& command) {
    const char* emulator = getenv("ROLLCALL_TEST_EMULATOR");
    if (emulator == nullptr) return command;
    std::vector<std::string> words = absl::StrSplit(emulator, ' ');
    for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH"}) {
      words.insert(words.end(), {"-E", absl::StrCat(name, "=", getenv(name))});
      unsetenv(name);
    }
    for (const std::string& word : command) words.push_back(Foreign(word));
    return words;
  }

  static std::string Foreign(const std::string& text) {
    const char* foreign = getenv("ROLLCALL_TEST_FOREIGN_BUILD");
    return foreign == nullptr ? text : absl::StrReplaceAll(text, {{ROLLCALL_BINARY_DIR, foreign}});
  }

  // Its wait status.
  static int WaitFor(pid_t pid) {
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }

  int Run(
      const std::vector<std::string>& command, const Environment& more = {},
      const std::function<void()>& prepare = [] {}) {
    return WaitFor(Start(command, more, prepare));
  }

  std::vector<std::filesystem::path> Segments() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      paths.push_back(entry.path());
    }
    return paths;
  }

  static SegmentSnapshot Read(const std::string& path) {
    auto reader = SegmentReader::Open(path);
    if (!reader.ok()) {
      ADD_FAILURE() << reader.status();
      return {};
    }
    auto snapshot = (*reader)->Read();
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.ok() ? *snapshot : SegmentSnapshot();
  }

  // The only segment in the folder.
  SegmentSnapshot Read() const {
    const std::vector<std::filesystem::path> paths = Segments();
    EXPECT_EQ(paths.size(), 1u);
    return paths.empty() ? SegmentSnapshot() : Read(paths.front());
  }

  // Empties the folder, for another run.
  void StartOver() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    chmod(directory_.c_str(), 0700);
  }

  std::string Stderr() const {
    std::ifstream file(scratch_ / "stderr");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Polls until the condition holds. The limit is only for tests that fail.
  static bool Eventually(const std::function<bool()>& so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!so()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  const std::string libraries_;
  std::filesystem::path scratch_, directory_;
};

}  // namespace rollcall
