// SPDX-License-Identifier: Apache-2.0
// rollcall install-library: puts librollcall.so into a folder, for init containers, whose image has
// no shell. With --pod, also what makes the processes of the pod load it and know their job.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "agent/processes/unique_fd.h"
#include "cli/commands.h"
#include "interpose/environment.h"

namespace rollcall {
namespace {

constexpr char kName[] = "librollcall.so";
constexpr mode_t kMode = 0755;

bool CopyAll(int from, int to) {
  struct stat file;
  if (fstat(from, &file) != 0) return false;
  for (off_t rest = file.st_size; rest > 0;) {
    const ssize_t copied = sendfile(to, from, nullptr, static_cast<size_t>(rest));
    if (copied < 0 && errno == EINTR) continue;
    if (copied == 0) errno = EIO;  // the library has become shorter
    if (copied <= 0) return false;
    rest -= copied;
  }
  return true;
}

// Readers of `target` find the old file or the whole new one; processes that have mapped the old
// one keep it. Returns 0 or errno.
int ReplaceWithCopy(const std::string& source, const std::string& target) {
  const UniqueFd from(open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.valid()) return errno;
  const std::string unnamed = absl::StrCat(target, ".", getpid(), ".new");
  unlink(unnamed.c_str());
  const UniqueFd to(open(unnamed.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!to.valid()) return errno;
  // The mode of the new file must not depend on the umask: jobs of other users load it.
  if (CopyAll(from.get(), to.get()) && fchmod(to.get(), kMode) == 0 && fsync(to.get()) == 0 &&
      rename(unnamed.c_str(), target.c_str()) == 0) {
    return 0;
  }
  const int failed = errno;
  unlink(unnamed.c_str());
  return failed;
}

}  // namespace

namespace {

// Anew: a link of this name, which another container of the pod may have left, is not followed.
int WriteFile(const std::string& path, const std::string& content) {
  const std::string unnamed = absl::StrCat(path, ".", getpid(), ".new");
  unlink(unnamed.c_str());
  const UniqueFd file(open(unnamed.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return errno;
  const auto size = static_cast<ssize_t>(content.size());
  if (write(file.get(), content.data(), content.size()) == size &&
      fchmod(file.get(), 0644) == 0 && rename(unnamed.c_str(), path.c_str()) == 0) {
    return 0;
  }
  const int failed = errno;
  unlink(unnamed.c_str());
  return failed;
}

// What of this container's environment the pod's other processes need.
std::string PodEnvironment(const std::string& library) {
  std::string lines = absl::StrCat(kPreloadVariable, "=", library, "\n");
  for (const char* name : kPodVariables) {
    const char* value = getenv(name);
    const bool is_line = value != nullptr && strchr(value, '\n') == nullptr;
    if (is_line && strcmp(name, kPreloadVariable) != 0)
      absl::StrAppend(&lines, name, "=", value, "\n");
  }
  return lines;
}

// The loader reads the first file as /etc/ld.so.preload. It is there in any case: Kubernetes would
// mount a folder in the place of a file that is missing.
int WritePodFiles(const std::string& folder, const std::string& library, bool has_library) {
  const int preload =
      WriteFile(absl::StrCat(folder, "/ld.so.preload"), has_library ? library + "\n" : "");
  if (preload != 0 || !has_library) return preload;
  return WriteFile(absl::StrCat(folder, "/environment"), PodEnvironment(library));
}

}  // namespace

int InstallLibraryCommand(const std::vector<std::string>& arguments) {
  std::string folder;
  bool for_pod = false;
  CLI::App app("Copies librollcall.so into a folder, for jobs whose image has no Rollcall",
               "rollcall install-library");
  app.add_option("DIR", folder, "the folder; made if it is missing")->required();
  app.add_flag(
      "--pod", for_pod,
      "also write ld.so.preload, for /etc of a pod's containers, and environment, from which "
      "processes without the container's environment learn their job; always exit with 0");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  // A pod must start, with the library or without.
  const int failure = for_pod ? 0 : 1;
  const std::string library = FindLibrary();
  if (library.empty()) {
    std::cerr << "rollcall install-library: there is no librollcall.so beside this program\n"
                 "  install the whole package or image, not the program alone\n";
    if (for_pod) WritePodFiles(folder, "", /*has_library=*/false);
    return failure;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string target = absl::StrCat(folder, "/", kName);
  int error = failed ? failed.value() : ReplaceWithCopy(library, target);
  if (for_pod) {
    const int of_files = WritePodFiles(folder, target, error == 0);
    if (error == 0) error = of_files;
  }
  if (error != 0) {
    std::cerr << "rollcall install-library: cannot write " << target << ": " << strerror(error)
              << "\n  another folder?  rollcall install-library DIR\n";
    return failure;
  }
  std::cout << target << "\n";
  return 0;
}

}  // namespace rollcall
