// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/folder_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstdint>

namespace rollcall {
namespace {

constexpr uint32_t kNewFiles = IN_CREATE | IN_MOVED_TO;
constexpr uint32_t kFolderGone = IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

std::unique_ptr<FolderWatch> FolderWatch::Open(const std::string& folder) {
  UniqueFd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.valid() ||
      inotify_add_watch(fd.get(), folder.c_str(), kNewFiles | kFolderGone | IN_ONLYDIR) < 0) {
    return nullptr;
  }
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(fd)));
}

FolderWatch::News FolderWatch::Take() {
  News news = News::kNone;
  alignas(inotify_event) char events[4096];
  ssize_t count;
  while ((count = read(fd_.get(), events, sizeof(events))) > 0) {
    for (ssize_t at = 0; at < count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & kNewFiles) == 0) return News::kGone;
      news = News::kNewFiles;
    }
  }
  return news;
}

}  // namespace rollcall
