// SPDX-License-Identifier: Apache-2.0
// rollcall install-library: puts librollcall.so into a folder, for init containers, whose image has
// no shell.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "agent/processes/unique_fd.h"
#include "cli/commands.h"

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

// Readers of `target` find the old file or the whole new one; processes that have mapped the old one
// keep it. Returns 0 or errno.
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

int InstallLibraryCommand(const std::vector<std::string>& arguments) {
  std::string folder;
  CLI::App app("Copies librollcall.so into a folder, for jobs whose image has no Rollcall",
               "rollcall install-library");
  app.add_option("DIR", folder, "the folder; made if it is missing")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::string library = FindLibrary();
  if (library.empty()) {
    std::cerr << "rollcall install-library: there is no librollcall.so beside this program\n"
                 "  install the whole package or image, not the program alone\n";
    return 1;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string target = absl::StrCat(folder, "/", kName);
  const int error = failed ? failed.value() : ReplaceWithCopy(library, target);
  if (error != 0) {
    std::cerr << "rollcall install-library: cannot write " << target << ": " << strerror(error)
              << "\n  another folder?  rollcall install-library DIR\n";
    return 1;
  }
  std::cout << target << "\n";
  return 0;
}

}  // namespace rollcall
